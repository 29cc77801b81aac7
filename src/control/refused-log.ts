/** Logs whom IP restrictions refuse, or would refuse: enough lines to see who it is, and never a flood. */
import type { Clock } from '../lib/clock.ts'
import type { Logger } from '../lib/log.ts'
import type { RestrictedPart } from '../resources/ip-restrictions.ts'

/** Lines a minute for each part. Anybody can cause one by connecting, so the log must not grow with the attack. */
const LINES_PER_MINUTE = 20

const MINUTE_MS = 60_000

export class RefusedLog {
  readonly #log: Logger
  readonly #now: Clock
  readonly #minutes = new Map<RestrictedPart, { readonly startedAt: number; lines: number; unlogged: number }>()

  constructor({ log, now }: { log: Logger; now: Clock }) {
    this.#log = log
    this.#now = now
  }

  /** `address` is not admitted to `part`; it was refused if the restriction is enforced. */
  note(part: RestrictedPart, address: string, { isEnforced }: { readonly isEnforced: boolean }): void {
    let minute = this.#minutes.get(part)
    const age = minute ? this.#now() - minute.startedAt : 0
    // A clock that was set back must not keep the log silent.
    const isOver = age < 0 || age >= MINUTE_MS
    const unlogged = isOver ? (minute?.unlogged ?? 0) : 0
    if (!minute || isOver) {
      minute = { startedAt: this.#now(), lines: 0, unlogged: 0 }
      this.#minutes.set(part, minute)
    }
    if (minute.lines >= LINES_PER_MINUTE) {
      minute.unlogged++
      return
    }
    minute.lines++
    const about = { restriction: part, peer: address, ...(unlogged > 0 && { unlogged }) }
    this.#log.info(about, isEnforced ? 'refused by an IP restriction' : 'an IP restriction would refuse this address')
  }
}
