/**
 * What the expressions of one request may cost, all together: 2 ms.
 *
 * What decides is a price, not the time that passes: a busy machine must not refuse requests that an idle one lets through,
 * and a policy must not fail one time and work the next. The price is in nanoseconds, as each part of an expression was
 * measured once warm (`npm run bench -- policy --only prices` shows what is charged beside what it takes). A clock is the net
 * below it, for a price that is wrong and for code that is not warm yet. It counts what the thread itself used, so that a
 * machine that does other things in between does not count, and it is generous: what is priced right never gets there.
 */

/** In nanoseconds. */
export const MAX_PRICE = 2_000_000
/** Nanoseconds of the price between two looks at the clock, which takes one microsecond. */
const LOOK_EVERY = 100_000
/** Of the thread's own time, in microseconds. */
const MAX_CPU_MICROS = 8000

export class BudgetSpent extends Error {
  constructor(by: string) {
    super(`the expressions of this request cost too much (${by})`)
    this.name = 'BudgetSpent'
  }
}

/** What the thread used so far, in microseconds. */
export type ThreadClock = () => number

export class Budget {
  readonly #clock: ThreadClock
  #left = MAX_PRICE
  #nextLook = MAX_PRICE - LOOK_EVERY
  /** When the clock was last looked at in the evaluation under way. */
  #since: number | undefined
  #usedMicros = 0
  #spentBy: string | undefined
  #isTold = false

  constructor(clock: ThreadClock = threadClock) {
    this.#clock = clock
  }

  /** Stays true: what is spent is spent for the rest of the request. */
  get isSpent(): boolean {
    return this.#spentBy !== undefined
  }

  /** In nanoseconds. */
  get left(): number {
    return this.isSpent ? 0 : Math.max(0, this.#left)
  }

  /** Throws `BudgetSpent` when there is not enough left, and ever after. */
  charge(nanos: number): void {
    this.#left -= nanos
    if (this.#left < this.#nextLook) this.#look()
  }

  /** Whether it is spent and nobody was told yet: once a request is enough. */
  tell(): boolean {
    if (this.#isTold || !this.isSpent) return false
    this.#isTold = true
    return true
  }

  /** An evaluation begins: what the thread did before is not its. */
  resume(): void {
    this.#since = undefined
  }

  /** The price is at its end, or the clock is due. */
  #look(): void {
    if (this.#spentBy === undefined) {
      if (this.#left < 0) this.#spentBy = 'over 2 ms'
      else {
        const now = this.#clock()
        if (this.#since !== undefined) this.#usedMicros += now - this.#since
        this.#since = now
        if (this.#usedMicros > MAX_CPU_MICROS) this.#spentBy = `over ${MAX_CPU_MICROS / 1000} ms by the clock`
      }
    }
    if (this.#spentBy !== undefined) {
      this.#nextLook = Number.POSITIVE_INFINITY
      throw new BudgetSpent(this.#spentBy)
    }
    this.#nextLook = Math.max(0, this.#left - LOOK_EVERY)
  }
}

/** Before Node 23.9 the time of the wall has to do. */
const threadClock: ThreadClock =
  typeof process.threadCpuUsage === 'function'
    ? () => {
        const { user, system } = process.threadCpuUsage()
        return user + system
      }
    : () => performance.now() * 1000
