/** Replaces what a pattern of a user matches in a URL, at a cost that is known before. */
import { affordable } from '../lib/pattern.ts'
import { compileReplacement } from '../lib/pattern-replace.ts'
import type { Moment } from './moment.ts'
import type { Template } from './template.ts'

/** A pattern is walked over each character: instructions and characters that cost as much as one step. */
const WALKED_A_STEP = 10

/** The text with all matches replaced. Throws `BudgetSpent`. */
export type Replace = (text: string, moment: Moment) => string

/** `from` may be filled in for each request; a fixed one is compiled once. */
export function compileReplace(from: string | undefined, pattern: Template | undefined, to: Template): Replace {
  if (from === undefined) return (_text, moment) => to.text(moment)
  const fixed = pattern ? undefined : compileReplacement(from)
  const price = pattern ? 0 : affordable(from)
  return (text, moment) => {
    const filled = pattern?.text(moment)
    const cost = filled === undefined ? price : affordable(filled)
    moment.budget.charge((cost * (text.length + 1)) / WALKED_A_STEP)
    const replace = fixed ?? compileReplacement(filled ?? '')
    return replace(text, to.text(moment))
  }
}
