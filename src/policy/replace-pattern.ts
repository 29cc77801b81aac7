/** Replaces what a pattern of a user matches in a URL, at a cost that is known before. */
import { affordable, BadPattern } from '../lib/patterns/pattern.ts'
import { compileReplacement } from '../lib/patterns/pattern-replace.ts'
import { BudgetSpent } from './budget.ts'
import type { Moment } from './moment.ts'
import { payForLate, UNFIT_LATE } from './patterns.ts'
import type { Template } from './template.ts'

/** What a pattern may compile to, in instructions: more would hold the event loop for over 5 ms when its policy is compiled. */
const MAX_REPLACED_PRICE = 2000

/** In the worst case each instruction is walked over at each character: what one of these costs, in nanoseconds. */
const WALKED_NANOS = 50

/** The text with all matches replaced. Throws `BudgetSpent`, or an error that says what is wrong. */
export type Replace = (text: string, moment: Moment) => string

/** The price of a pattern that may be replaced; throws `BadPattern`. */
export function replaceable(pattern: string): number {
  const price = affordable(pattern)
  if (price <= MAX_REPLACED_PRICE) return price
  throw new BadPattern(
    `is too costly: it compiles to over ${MAX_REPLACED_PRICE} instructions; use fewer or smaller repetitions and classes`,
  )
}

/** `from` may be filled in for each request; a fixed one is compiled once. */
export function compileReplace(from: string | undefined, pattern: Template | undefined, to: Template): Replace {
  if (from === undefined) return (_text, moment) => to.text(moment)
  const fixed = pattern ? undefined : { price: replaceable(from), replace: compileReplacement(from) }
  return (text, moment) => {
    const { price, replace } = fixed ?? compileLate(pattern?.text(moment) ?? '', moment)
    moment.budget.charge(price * (text.length + 1) * WALKED_NANOS)
    return replace(text, to.text(moment))
  }
}

function compileLate(pattern: string, { budget }: Moment) {
  try {
    return { price: payForLate(budget, pattern), replace: compileReplacement(pattern) }
  } catch (error) {
    if (error instanceof BudgetSpent) throw error
    throw new Error(UNFIT_LATE)
  }
}
