/** The standbys at this data plane, which checks their credentials itself, since nothing else knows of them. */
import type { AgentStandby } from './standby.ts'

/** How often their credentials are checked, in milliseconds. A standby opens nothing before its own is checked again. */
const CHECK_MS = 60_000

/**
 * How many standbys become sessions at the same time, including the requests that come with that. After a node's death thousands
 * want to begin at once: far fewer would leave the database idle, and far more would fill the memory with half-begun sessions.
 */
const AT_ONCE = 400
const LONGEST_MS = 2000

export class StandbyTable {
  readonly turns = new BeginTurns({ atOnce: AT_ONCE, longestMs: LONGEST_MS })
  /** Whether a credential is still valid; rejects when that is not known. */
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

  /** Ends standbys whose credential is gone. */
  async check(): Promise<void> {
    const byCredential = Map.groupBy(this.#all, ({ credentialId }) => credentialId)
    for (const [credentialId, standbys] of byCredential) {
      // Without an answer they stay: agents need standbys most when things fail.
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

/**
 * Turns to begin a session: of many that want to begin at once, a bounded number do. The others wait with next to nothing in
 * memory, which half-begun sessions would fill.
 */
export class BeginTurns {
  readonly atOnce: number
  /** How long a turn lasts at most, in milliseconds, even while its work goes on: a slow session must not hold up the others. */
  readonly #longestMs: number
  readonly #waiting: (() => void)[] = []
  #taken = 0

  constructor({ atOnce, longestMs }: { readonly atOnce: number; readonly longestMs: number }) {
    this.atOnce = atOnce
    this.#longestMs = longestMs
  }

  /** Turns that are not over. */
  get taken(): number {
    return this.#taken
  }

  /** Resolves when the caller's turn comes, first come first served; call the result when the work is done. */
  async take(): Promise<() => void> {
    if (this.#taken < this.atOnce) this.#taken++
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
    let isOver = false
    const over = (): void => {
      if (isOver) return
      isOver = true
      clearTimeout(timer)
      this.#pass()
    }
    const timer = setTimeout(over, this.#longestMs).unref()
    return over
  }

  #pass(): void {
    const next = this.#waiting.shift()
    if (next) next()
    else this.#taken--
  }
}
