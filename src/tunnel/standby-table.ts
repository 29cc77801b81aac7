/** The standbys at this data plane. Nothing else knows of them, so whether their credentials still count is asked from here. */
import { BeginTurns } from './begin-turns.ts'
import type { AgentStandby } from './standby.ts'

/** How often the credentials of all are asked for, in milliseconds. A standby opens nothing without being asked for its own again. */
const CHECK_MS = 60_000

/**
 * How many become sessions at the same time, until what they asked for along with that is answered. After a node's death
 * thousands want to at once. Far fewer would leave the database waiting, and far more fill the memory with what is half done.
 */
const AT_ONCE = 400
const LONGEST_MS = 2000

export class StandbyTable {
  readonly turns = new BeginTurns({ atOnce: AT_ONCE, longestMs: LONGEST_MS })
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
