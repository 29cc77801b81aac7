/** Deadlines of many connections, looked at by one timer: setting one costs a store, not a timer. */

/** How often deadlines and the clock are looked at, in milliseconds: both may be off by this much. */
const EVERY_MS = 1000

/** A deadline that can be moved at any time. */
export interface Deadline {
  /** In the time of its sweep; `Infinity` for never. */
  at: number
}

/** Whoever has a deadline. */
export interface Expiring {
  /** It passed. */
  expired(): void
}

interface Entry extends Deadline {
  readonly owner: Expiring
  /** Where it stands among all. */
  place: number
}

export interface SweepOptions {
  readonly now?: () => number
  readonly everyMs?: number
}

export class Sweep {
  readonly #now: () => number
  readonly #everyMs: number
  /**
   * Not a Set: one that is added to and taken from for every request is made anew again and again, and with it about
   * twice as much of what was over outlived the collector of young objects.
   */
  readonly #entries: Entry[] = []
  #timer: NodeJS.Timeout | undefined
  #time: number

  constructor({ now = () => performance.now(), everyMs = EVERY_MS }: SweepOptions = {}) {
    this.#now = now
    this.#everyMs = everyMs
    this.#time = now()
  }

  /** Begins without a deadline. One that passed is taken back before its owner is told. */
  add(owner: Expiring): Deadline {
    const entry: Entry = { at: Number.POSITIVE_INFINITY, owner, place: this.#entries.length }
    this.#entries.push(entry)
    if (this.#timer === undefined) {
      this.#time = this.#now()
      this.#timer = setInterval(() => this.run(), this.#everyMs).unref()
    }
    return entry
  }

  /** Once; no harm when it is not there any more. */
  remove(deadline: Deadline): void {
    const { place } = deadline as Entry // what `add` gave
    if (this.#entries[place] !== deadline) return
    const last = this.#entries.pop()
    if (last && last !== deadline) {
      this.#entries[place] = last
      last.place = place
    }
    if (this.#entries.length > 0) return
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
    for (let place = 0; place < this.#entries.length; ) {
      const entry = this.#entries[place]
      if (entry && entry.at <= now) {
        entry.at = Number.POSITIVE_INFINITY
        entry.owner.expired()
      }
      // One that took itself away has another in its place. One that moved to before here is looked at the next time.
      if (this.#entries[place] === entry) place++
    }
  }
}
