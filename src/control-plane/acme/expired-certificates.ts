/** Removes certificates that were issued for names that are no longer served, a day after they have expired. */
import { tlsCertificates } from '../resources/tls-certificates.ts'
import type { ControlTools } from '../store/control-tools.ts'
import { reasonOf } from './order-fault.ts'
import type { WantedNames } from './wanted-names.ts'

interface ExpiredCertificatesOptions extends Pick<ControlTools, 'store' | 'now' | 'log'> {
  readonly wanted: Pick<WantedNames, 'leftOver'>
}

/** Pause between two rounds, in milliseconds. */
const EVERY_MS = 3_600_000

/** How long an expired certificate stays, in milliseconds, in case a clock is wrong. */
const GRACE_MS = 86_400_000

/** The most that a round removes, each in its own transaction, so that nobody has to wait for it. */
const AT_A_TIME = 1000

export class ExpiredCertificates {
  readonly #options: ExpiredCertificatesOptions
  #timer: NodeJS.Timeout | undefined

  constructor(options: ExpiredCertificatesOptions) {
    this.#options = options
  }

  start(): void {
    this.#timer = setInterval(() => void this.tidy(), EVERY_MS).unref()
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  /** One round. Failures are retried in the next. */
  async tidy(): Promise<void> {
    const { wanted, now, log } = this.#options
    const before = now() - GRACE_MS
    let removed = 0
    try {
      for (const id of wanted.leftOver(before).slice(0, AT_A_TIME)) if (await this.#remove(id, before)) removed++
    } catch (err) {
      log.warn({ reason: reasonOf(err) }, 'expired certificates cannot be removed; retrying')
    }
    if (removed > 0) log.info({ removed }, 'expired certificates removed')
  }

  /** Checks the stored certificate once more: it may have been renewed, or a reserved domain may refer to it. */
  async #remove(id: string, before: number): Promise<boolean> {
    const { kind } = tlsCertificates
    return this.#options.store.write(async (writer) => {
      const row = await writer.lock(kind, id)
      if (!row?.fields.issued_for || !(Date.parse(String(row.fields.not_after)) < before)) return false
      if ((await writer.referrers(id, 1)).length > 0) return false
      await writer.remove(id)
      writer.changed(kind, id)
      return true
    })
  }
}
