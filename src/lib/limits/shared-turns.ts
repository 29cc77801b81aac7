/** Turns at work that goes on a bounded number of times at once, shared by owners: while others wait, one has a quarter. */

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
  readonly #quarter: number
  #taken = 0
  readonly #takenBy = new Map<string, number>()
  /** Those that wait, oldest first, by owner; the owner whose turn is next comes first. */
  readonly #waiting = new Map<string, Set<Waiting>>()
  #waitingCount = 0

  constructor(options: SharedTurnsOptions) {
    this.#options = options
    this.#quarter = Math.max(1, options.atOnce / 4)
  }

  /** True when the turn has come at once; else resolves with whether it came in time. Each turn that came ends with `over`. */
  take(owner: string): true | Promise<boolean> {
    // While somebody waits, every place is taken.
    if (this.#taken < this.#options.atOnce) return this.#begin(owner)
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const timer = setTimeout(() => this.#leave(owner, settle), this.#options.waitMs).unref()
    const settle: Waiting = (hasTurn) => {
      clearTimeout(timer)
      resolve(hasTurn)
    }
    const same = this.#waiting.get(owner)
    if (same) same.add(settle)
    else this.#waiting.set(owner, new Set([settle]))
    this.#waitingCount++
    if (this.#waitingCount > this.#options.waiting) this.#giveUp(owner)
    return promise
  }

  /** A turn of this owner is over. */
  over(owner: string): void {
    const left = (this.#takenBy.get(owner) ?? 0) - 1
    if (left > 0) this.#takenBy.set(owner, left)
    else this.#takenBy.delete(owner)
    this.#taken--
    const next = this.#next()
    const [first] = this.#waiting.get(next ?? '') ?? []
    if (next === undefined || !first) return
    this.#remove(next, first)
    this.#begin(next)
    first(true)
  }

  #begin(owner: string): true {
    this.#taken++
    this.#takenBy.set(owner, (this.#takenBy.get(owner) ?? 0) + 1)
    return true
  }

  /** The first owner that has less than a quarter; when all who wait have more, the first of them. */
  #next(): string | undefined {
    for (const owner of this.#waiting.keys()) if ((this.#takenBy.get(owner) ?? 0) < this.#quarter) return owner
    const [first] = this.#waiting.keys()
    return first
  }

  /** `newcomer` gives up, unless others have more that wait. */
  #giveUp(newcomer: string): void {
    let most = newcomer
    const count = (owner: string): number => this.#waiting.get(owner)?.size ?? 0
    for (const owner of this.#waiting.keys()) if (count(owner) > count(most)) most = owner
    const [oldest] = this.#waiting.get(most) ?? []
    if (oldest) this.#leave(most, oldest)
  }

  #leave(owner: string, waiting: Waiting): void {
    this.#remove(owner, waiting)
    waiting(false)
  }

  /** The owner's next one comes after those of all others. */
  #remove(owner: string, waiting: Waiting): void {
    const same = this.#waiting.get(owner)
    if (!same?.delete(waiting)) return
    this.#waitingCount--
    this.#waiting.delete(owner)
    if (same.size > 0) this.#waiting.set(owner, same)
  }
}
