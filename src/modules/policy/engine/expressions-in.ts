/** Lists the expressions of a checked policy, which its rules need when they are compiled. */

import type { Rule } from './policy-form.ts'
import type { Direction } from './policy-phases.ts'
import { expressionsInSource, sources } from './sources.ts'

type Rules = Readonly<Record<Direction, readonly Rule[]>>

/** An expression, and whether it decides about a retry, when it may read more variables. */
interface FoundExpression {
  readonly text: string
  readonly isRetry: boolean
}

/** The text of each expression once, in order. */
export function expressionsIn(rules: Rules): readonly string[] {
  return [...new Set(Array.from(foundIn(rules), ({ text }) => text))]
}

/** The expressions of one rule list in order, including repeated ones. */
export function* expressionsOf(rules: Rules, direction: Direction): Generator<FoundExpression> {
  for (const found of foundIn(rules)) if (found.direction === direction) yield found
}

function* foundIn({ inbound, outbound }: Rules): Generator<FoundExpression & { readonly direction: Direction }> {
  // Copied only for the type: `sources` takes mutable arrays, but does not change them.
  const lists = { enabled: true, inbound: [...inbound], outbound: [...outbound] }
  for (const source of sources(lists, '')) {
    const { kind, direction } = source
    for (const text of expressionsInSource(source)) yield { text, direction, isRetry: kind === 'retry' }
  }
}
