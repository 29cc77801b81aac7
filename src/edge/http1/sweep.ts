/** Deadlines of many connections, looked at by one timer: setting one costs a store, not a timer. */

/** How often deadlines and the clock are looked at, in milliseconds: both may be off by this much. */
const EVERY_MS = 1000

/** A deadline that can be moved at any time. */
export interface Deadline {
  /** In the time of its sweep; `Infinity` for never. */
  at: number
}

interface Entry extends Deadline {
  readonly expired: () => void
}

export interface SweepOptions {
  readonly now?: () => number
  readonly everyMs?: number
}

export class Sweep {
  readonly #now: () => number
  readonly #everyMs: number
  readonly #entries = new Set<Deadline>()
  #timer: NodeJS.Timeout | undefined
  #time: number

  constructor({ now = () => performance.now(), everyMs = EVERY_MS }: SweepOptions = {}) {
    this.#now = now
    this.#everyMs = everyMs
    this.#time = now()
  }

  /** Begins without a deadline. One that passed is taken back before `expired` is called. */
  add(expired: () => void): Deadline {
    const entry: Entry = { at: Number.POSITIVE_INFINITY, expired }
    this.#entries.add(entry)
    if (this.#timer === undefined) {
      this.#time = this.#now()
      this.#timer = setInterval(() => this.run(), this.#everyMs).unref()
    }
    return entry
  }

  remove(deadline: Deadline): void {
    this.#entries.delete(deadline)
    if (this.#entries.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** The time `ms` from the last look: reading the clock for every chunk would cost more than what it is for. */
  after(ms: number): number {
    return this.#time + ms
  }

  /** Looks once; the timer does so by itself. */
  run(): void {
    const now = this.#now()
    this.#time = now
    for (const entry of this.#entries as Set<Entry>) {
      if (entry.at > now) continue
      entry.at = Number.POSITIVE_INFINITY
      entry.expired()
    }
  }
}
