/**
 * What the expressions of one request may cost, all together.
 *
 * It is counted in steps and not in time: a busy machine must not refuse requests that an idle one lets through. A step is
 * a node of an expression, a turn of a loop, or a few characters that a function reads or makes.
 */

/** Chosen by measuring hostile expressions once warm: nearly all that spend it take about 2 ms, the worst seen 3 to 4. */
export const MAX_STEPS = 4000

export class BudgetSpent extends Error {
  constructor() {
    super('the expressions of this request cost too much')
    this.name = 'BudgetSpent'
  }
}

export class Budget {
  #left = MAX_STEPS
  /** Stays true: the evaluator takes errors for values, and an expression may swallow one. */
  isSpent = false

  /** Throws `BudgetSpent` when there is not enough left, and ever after. */
  charge(steps: number): void {
    this.#left -= steps
    if (this.#left >= 0 && !this.isSpent) return
    this.isSpent = true
    throw new BudgetSpent()
  }

  get left(): number {
    return Math.max(0, this.#left)
  }
}
