/** Deadlines of many connections, checked by one timer: setting a deadline is one assignment, not a timer. */

/** How often deadlines and the clock are checked, in milliseconds; both may be off by this much. */
const EVERY_MS = 1000

/** A deadline that can be moved at any time. */
export interface Deadline {
  /** In the sweep's own time; `Infinity` for never. */
  at: number
}

/** The owner of a deadline. */
export interface Expiring {
  /** The deadline passed. */
  expired(): void
}

interface Entry extends Deadline {
  readonly owner: Expiring
  /** Its index in the list. */
  index: number
}

interface SweepOptions {
  readonly now?: () => number
  readonly everyMs?: number
}

export class Sweep {
  readonly #now: () => number
  readonly #everyMs: number
  /**
   * Not a Set: a Set that changes with every request is rebuilt repeatedly, which made about twice as much garbage
   * survive the young generation.
   */
  readonly #entries: Entry[] = []
  #timer: NodeJS.Timeout | undefined
  #time: number

  constructor({ now = () => performance.now(), everyMs = EVERY_MS }: SweepOptions = {}) {
    this.#now = now
    this.#everyMs = everyMs
    this.#time = now()
  }

  /** Adds an owner, without a deadline yet. A deadline that has passed is removed before its owner is notified. */
  add(owner: Expiring): Deadline {
    const entry: Entry = { at: Number.POSITIVE_INFINITY, owner, index: this.#entries.length }
    this.#entries.push(entry)
    if (this.#timer === undefined) {
      this.#time = this.#now()
      this.#timer = setInterval(() => this.run(), this.#everyMs).unref()
    }
    return entry
  }

  /** Does nothing for a deadline that is not there. */
  remove(deadline: Deadline): void {
    const { index } = deadline as Entry // what `add` gave
    if (this.#entries[index] !== deadline) return
    const last = this.#entries.pop()
    if (last && last !== deadline) {
      this.#entries[index] = last
      last.index = index
    }
    if (this.#entries.length > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** The time `ms` after the last check: reading the clock for every chunk would cost too much. */
  after(ms: number): number {
    return this.#time + ms
  }

  /** The exact time; it costs more than `after`. */
  now(): number {
    return this.#now()
  }

  /** Checks once; the timer calls it too. */
  run(): void {
    const now = this.#now()
    this.#time = now
    for (let index = 0; index < this.#entries.length; ) {
      const entry = this.#entries[index]
      if (entry && entry.at <= now) {
        entry.at = Number.POSITIVE_INFINITY
        entry.owner.expired()
      }
      // An owner that removed itself has another in its place. One that moved to an earlier index is checked next time.
      if (this.#entries[index] === entry) index++
    }
  }
}
