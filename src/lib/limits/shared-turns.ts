/** Turns at work that goes on a bounded number of times at once, shared by owners: while others wait, one has a quarter. */
import { Shares } from './shares.ts'

interface SharedTurnsOptions {
  /** Most turns at once. */
  readonly atOnce: number
  /** Most that wait for a turn; beyond that, the owner with most of them gives up its oldest. */
  readonly waiting: number
  /** How long one waits, in milliseconds. */
  readonly waitMs: number
}

/** Called once, with whether its turn has come. */
type Waiting = (hasTurn: boolean) => void

/**
 * @example
 * const turns = new SharedTurns({ atOnce: 100, waiting: 1000, waitMs: 2000 })
 * if (!(await turns.take(owner))) return busy()
 * try {
 *   await work()
 * } finally {
 *   turns.over(owner)
 * }
 */
export class SharedTurns {
  readonly #options: SharedTurnsOptions
  readonly #taken: Shares
  readonly #queued: Shares
  /** Those that wait, oldest first, by owner; the owner whose turn is next comes first. */
  readonly #waiting = new Map<string, Set<Waiting>>()

  constructor(options: SharedTurnsOptions) {
    this.#options = options
    this.#taken = new Shares(options.atOnce)
    this.#queued = new Shares(options.waiting)
  }

  /** True when the turn has come at once; else resolves with whether it came in time. Each turn that came ends with `over`. */
  take(owner: string): true | Promise<boolean> {
    // While somebody waits, every place is taken.
    if (this.#taken.used < this.#options.atOnce) return this.#begin(owner)
    const giver = this.#queued.giver(owner)
    if (giver !== undefined) {
      const [oldest] = this.#waiting.get(giver) ?? []
      if (!oldest) return Promise.resolve(false)
      this.#leave(giver, oldest)
    }
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const timer = setTimeout(() => this.#leave(owner, settle), this.#options.waitMs).unref()
    const settle: Waiting = (hasTurn) => {
      clearTimeout(timer)
      resolve(hasTurn)
    }
    const same = this.#waiting.get(owner)
    if (same) same.add(settle)
    else this.#waiting.set(owner, new Set([settle]))
    this.#queued.add(owner, 1)
    return promise
  }

  /** A turn of this owner is over. */
  over(owner: string): void {
    this.#taken.add(owner, -1)
    const next = this.#next()
    const [first] = this.#waiting.get(next ?? '') ?? []
    if (next === undefined || !first) return
    this.#remove(next, first)
    this.#begin(next)
    first(true)
  }

  #begin(owner: string): true {
    this.#taken.add(owner, 1)
    return true
  }

  /** The first owner that has less than its share; when all who wait have more, the first of them. */
  #next(): string | undefined {
    const [first] = this.#waiting.keys()
    for (const owner of this.#waiting.keys()) if (!this.#taken.hasShare(owner)) return owner
    return first
  }

  #leave(owner: string, waiting: Waiting): void {
    this.#remove(owner, waiting)
    waiting(false)
  }

  /** The owner's next one comes after those of all others. */
  #remove(owner: string, waiting: Waiting): void {
    const same = this.#waiting.get(owner)
    if (!same?.delete(waiting)) return
    this.#queued.add(owner, -1)
    this.#waiting.delete(owner)
    if (same.size > 0) this.#waiting.set(owner, same)
  }
}
