/** Limits the total cost of all expressions of one request: 2 ms. */

/**
 * The budget of a request, in nanoseconds.
 *
 * The limit is on a price and not on elapsed time. A busy machine must not refuse requests that an idle one lets through,
 * and a policy must not fail one time and work the next. Each part of an expression has a price in nanoseconds, measured in
 * warm code. `npm run bench -- policy --only prices` prints the price beside the time that it really takes.
 */
export const MAX_PRICE = 2_000_000
/** The clock is read each time this many nanoseconds were charged; reading it takes one microsecond. */
const LOOK_EVERY = 100_000
/**
 * The most CPU time of the thread, in microseconds: the safety net for wrong prices and for code that is not warm yet. The
 * clock counts CPU time of this thread, so that other work of the machine does not count. The limit is so generous that
 * correctly priced work never reaches it.
 */
const MAX_CPU_MICROS = 8000

export class BudgetSpent extends Error {
  constructor(by: string) {
    super(`the expressions of this request cost too much (${by})`)
    this.name = 'BudgetSpent'
  }
}

/** The CPU time that the thread has used so far, in microseconds. */
type ThreadClock = () => number

export class Budget {
  readonly #clock: ThreadClock
  #left = MAX_PRICE
  #nextLook = MAX_PRICE - LOOK_EVERY
  /** The last reading of the clock during the present evaluation. */
  #since: number | undefined
  #usedMicros = 0
  #spentBy: string | undefined
  #isReported = false

  constructor(clock: ThreadClock = threadClock) {
    this.#clock = clock
  }

  /** Once true, it stays true for the rest of the request. */
  get isSpent(): boolean {
    return this.#spentBy !== undefined
  }

  /** What is left, in nanoseconds. */
  get left(): number {
    return this.isSpent ? 0 : Math.max(0, this.#left)
  }

  /** Throws `BudgetSpent` when not enough is left, and from then on every time. */
  charge(nanos: number): void {
    this.#left -= nanos
    if (this.#left < this.#nextLook) this.#check()
  }

  /** True on the first call after the budget was spent, so that a request is logged once. */
  tell(): boolean {
    if (this.#isReported || !this.isSpent) return false
    this.#isReported = true
    return true
  }

  /** Call it when an evaluation begins: earlier work of the thread does not count. */
  resume(): void {
    this.#since = undefined
  }

  /** Called when the budget is used up or the clock is due. */
  #check(): void {
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

/** Node before 23.9 cannot measure the CPU time of a thread, so wall-clock time is used there. */
const threadClock: ThreadClock =
  typeof process.threadCpuUsage === 'function'
    ? () => {
        const { user, system } = process.threadCpuUsage()
        return user + system
      }
    : () => performance.now() * 1000
