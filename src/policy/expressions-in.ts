/** Lists the expressions of a checked policy, which its rules need when they are compiled. */
import type { Rule } from './form.ts'
import { pieces } from './interpolation.ts'
import type { Direction } from './phases.ts'
import { type ExpressionSource, sources } from './sources.ts'

type Rules = Readonly<Record<Direction, readonly Rule[]>>

/** Each expression once, in order: of the rule list `only`, or of both lists. */
export function expressionsIn({ inbound, outbound }: Rules, only?: Direction): readonly string[] {
  const found = new Set<string>()
  // Copied only for the type: `sources` takes mutable arrays, but does not change them.
  const lists = { enabled: true, inbound: [...inbound], outbound: [...outbound] }
  for (const source of sources(lists, '')) {
    if (only === undefined || source.direction === only) for (const text of textsOf(source)) found.add(text)
  }
  return [...found]
}

function* textsOf({ kind, text }: ExpressionSource): Generator<string> {
  if (kind === 'condition' || kind === 'value') yield text
  else if (text.includes('${')) for (const piece of pieces(text)) if ('expression' in piece) yield piece.expression
}
