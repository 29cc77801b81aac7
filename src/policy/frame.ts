/** What an evaluation under way works with. */
import type { Budget } from './budget.ts'
import type { Library } from './library.ts'
import type { Moment } from './moment.ts'

export interface Frame {
  readonly moment: Moment
  readonly budget: Budget
  readonly library: Library
  /** The variables that were read so far, by their number in the expression. */
  readonly values: unknown[]
  /** What the loops under way have bound. */
  readonly locals: unknown[]
}

/**
 * What an expression stumbled over. A value and not an exception: `a || b` is true when `b` is, whatever became of `a`, and
 * a loop may stumble thousands of times.
 */
export class Fault {
  readonly message: string

  constructor(message: string) {
    this.message = message
  }
}

/** A part of an expression; gives a value of CEL or a `Fault`, and throws only when the budget is spent. */
export type Run = (frame: Frame) => unknown

/**
 * A function of expressions, given its target first and then its arguments. It pays for what it does before it does it.
 * Undefined: it is not for values of these types, and the library is asked.
 */
export type Impl = (frame: Frame, a: unknown, b: unknown, c: unknown, d: unknown) => unknown

/** By name and number of operands, such as `startsWith/2`. */
export type Impls = Readonly<Record<string, Impl>>
