/** The state of one evaluation, and what its functions return. */
import type { Budget } from './budget.ts'
import type { Library } from './load-cel.ts'
import type { Moment } from './moment.ts'

export interface Frame {
  readonly moment: Moment
  readonly budget: Budget
  readonly library: Library
  /** The variables read so far, by their number in the expression. */
  readonly values: unknown[]
  /** The variables of the loops that are running. */
  readonly locals: unknown[]
}

/**
 * Why an expression failed. It is a value, not an exception: `a || b` is true when `b` is, even if `a` failed, and a
 * loop may fail thousands of times.
 */
export class Fault {
  readonly message: string

  constructor(message: string) {
    this.message = message
  }
}

/** A part of an expression; returns a value of CEL or a `Fault`, and throws only when the budget is spent. */
export type Run = (frame: Frame) => unknown

/**
 * A function of expressions. It takes its target first and then its arguments, and charges the budget before it works.
 * Undefined: it does not take values of these types, and the library is called instead.
 */
export type Impl = (frame: Frame, a: unknown, b: unknown, c: unknown, d: unknown) => unknown

/** Functions by name and number of operands, such as `startsWith/2`. */
export type Impls = Readonly<Record<string, Impl>>
