/** The meter of a request: all that a policy makes the server do is charged here in steps, and a spent meter refuses (D102). */

/**
 * The steps of a request.
 *
 * They are counted, never timed: a busy machine must not refuse requests that an idle one lets through, and a policy must not
 * fail one time and work the next. A step is what takes about a nanosecond in warm code on the event loop.
 * `npm run bench -- policy --only prices` prints the price of expressions beside the time that they really take.
 */
export const MAX_PRICE = 2_000_000

/** The most `http-request` actions that run for one request. */
const MAX_CALLS = 8

/** The price of a character of a text that is put together. */
const WRITTEN_STEPS = 6

export class BudgetSpent extends Error {
  constructor(over: string) {
    super(`the rules have more to do for this request than they may (over ${over})`)
    this.name = 'BudgetSpent'
  }
}

export class Budget {
  #left = MAX_PRICE
  #calls = 0
  #isReported = false

  /** Once true, it stays true for the rest of the request. */
  get isSpent(): boolean {
    return this.#left < 0
  }

  /** The steps that are left. */
  get left(): number {
    return Math.max(0, this.#left)
  }

  /** Throws `BudgetSpent` when not enough is left, and from then on every time. */
  charge(steps: number): void {
    this.#left -= steps
    if (this.#left < 0) throw new BudgetSpent(`${MAX_PRICE} steps`)
  }

  /** Charges for characters that a replacement writes. */
  write(characters: number): void {
    this.charge(characters * WRITTEN_STEPS)
  }

  /** Charges for one action that calls another server. */
  call(): void {
    if (++this.#calls <= MAX_CALLS) return
    this.#left = -1
    throw new BudgetSpent(`${MAX_CALLS} actions that call other servers`)
  }

  /** True on the first call after the budget was spent, so that a request is logged once. */
  tell(): boolean {
    if (this.#isReported || !this.isSpent) return false
    this.#isReported = true
    return true
  }
}
