/** Replaces the matches of a pattern in a URL; the search is charged before it begins, and what is written as it grows. */
import { affordable, BadPattern } from '../../../lib/patterns/pattern.ts'
import { compileReplacement } from '../../../lib/patterns/pattern-replace.ts'
import { BudgetSpent } from './budget.ts'
import type { Moment } from './moment.ts'
import { payForLate, UNFIT_LATE } from './patterns.ts'
import { MAX_HEAD_LENGTH } from './phase-settings.ts'
import type { Template } from './template.ts'

/** The largest pattern, in instructions. Compiling a larger one with its policy would hold the event loop for over 5 ms. */
const MAX_REPLACED_PRICE = 2000

/** The price of one instruction at one character, in nanoseconds; in the worst case every instruction runs at each. */
const WALKED_NANOS = 50

/** Returns the text with all matches replaced. Throws `BudgetSpent`, or an error that says what is wrong. */
type Replace = (text: string, moment: Moment) => string

/** The price of a pattern that is small enough for replacing; throws `BadPattern` for a larger one. */
export function replaceable(pattern: string): number {
  const price = affordable(pattern)
  if (price <= MAX_REPLACED_PRICE) return price
  throw new BadPattern(
    `is too costly: it compiles to over ${MAX_REPLACED_PRICE} instructions; use fewer or smaller repetitions and classes`,
  )
}

/** A pattern without `${…}` is compiled once, others for each request. */
export function compileReplace(from: string | undefined, pattern: Template | undefined, to: Template): Replace {
  if (from === undefined) return (_text, moment) => to.text(moment)
  const fixed = pattern ? undefined : { price: replaceable(from), replace: compileReplacement(from, MAX_HEAD_LENGTH) }
  return (text, moment) => {
    const { price, replace } = fixed ?? compileLate(pattern?.text(moment) ?? '', moment)
    moment.budget.charge(price * (text.length + 1) * WALKED_NANOS)
    return replace(text, to.text(moment), moment.budget)
  }
}

function compileLate(pattern: string, { budget }: Moment) {
  try {
    return { price: payForLate(budget, pattern), replace: compileReplacement(pattern, MAX_HEAD_LENGTH) }
  } catch (error) {
    if (error instanceof BudgetSpent) throw error
    throw new Error(UNFIT_LATE)
  }
}
