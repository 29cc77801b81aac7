/** The standbys at this data plane. Nothing else knows of them, so whether their credentials still count is asked from here. */
import type { AgentStandby } from './standby.ts'

/** How often the credentials of all are asked for, in milliseconds. A standby opens nothing without being asked for its own again. */
const CHECK_MS = 60_000

export class StandbyTable {
  /** Rejects when that cannot be known. */
  readonly #isCurrent: (credentialId: string) => Promise<boolean>
  readonly #all = new Set<AgentStandby>()
  #timer: NodeJS.Timeout | undefined

  constructor(isCurrent: (credentialId: string) => Promise<boolean>) {
    this.#isCurrent = isCurrent
  }

  get all(): readonly AgentStandby[] {
    return [...this.#all]
  }

  get size(): number {
    return this.#all.size
  }

  add(standby: AgentStandby): void {
    this.#all.add(standby)
    this.#plan()
  }

  remove(standby: AgentStandby): void {
    this.#all.delete(standby)
    if (this.#all.size > 0) return
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  /** Ends those whose credential is gone. */
  async check(): Promise<void> {
    const byCredential = Map.groupBy(this.#all, ({ credentialId }) => credentialId)
    for (const [credentialId, standbys] of byCredential) {
      // Without an answer they stay: agents need them most on a bad day.
      const isCurrent = await this.#isCurrent(credentialId).catch(() => true)
      if (!isCurrent) for (const standby of standbys) standby.end('its credential was deleted')
    }
  }

  #plan(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      void this.check().then(() => {
        if (this.#all.size > 0) this.#plan()
      })
    }, CHECK_MS).unref()
  }
}
