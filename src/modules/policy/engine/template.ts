/** Texts with `${…}` in them: parsed once, filled in for each request. */
import type { CelValue } from '@bufbuild/cel'
import type { Evaluate, Evaluator } from './evaluator.ts'
import { pieces } from './interpolation.ts'
import type { Moment } from './moment.ts'

/** The most characters of a filled in text. */
const MAX_LENGTH = 1024 * 1024

export interface Template {
  readonly text: (moment: Moment) => string
  /** The value itself when the whole text is one `${…}`, else the text. */
  readonly value: (moment: Moment) => CelValue
}

export function compileTemplate(
  template: string,
  expression: (text: string) => Evaluate,
  evaluator: Evaluator,
): Template {
  const parts = [...pieces(template)].map((piece): string | Evaluate =>
    'text' in piece ? piece.text : expression(piece.expression),
  )
  const [only = ''] = parts
  if (parts.length < 2 && typeof only === 'string') {
    const fixed = ({ budget }: Moment): string => {
      budget.charge(only.length)
      return only
    }
    return { text: fixed, value: fixed }
  }
  const text = (moment: Moment): string => {
    let filled = ''
    for (const part of parts) {
      if (typeof part !== 'string') filled += evaluator.text(part(moment), moment.budget)
      else {
        moment.budget.charge(part.length)
        filled += part
      }
      if (filled.length > MAX_LENGTH) throw new Error('a text has become too long')
    }
    return filled
  }
  if (parts.length > 1 || typeof only !== 'function') return { text, value: text }
  const value = (moment: Moment): CelValue => {
    const given = only(moment)
    evaluator.payFor(given, moment.budget)
    return given
  }
  return { text, value }
}
