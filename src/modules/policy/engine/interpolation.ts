/** Finds the `${…}` in the strings of an action's settings. */
import { BadExpression } from './cel.ts'
import { isOpenString, nesting, tokens } from './cel-tokens.ts'

/** A string in pieces: text as it is, and the CEL source of each `${…}`. */
type Piece = { readonly text: string } | { readonly expression: string }

/** Splits a string at its `${…}`, one by one; throws `BadExpression` when one is not closed. */
export function* pieces(template: string): Generator<Piece> {
  let at = 0
  for (let open = template.indexOf('${'); open >= 0; open = template.indexOf('${', at)) {
    const close = closing(template, open + 2)
    if (open > at) yield { text: template.slice(at, open) }
    yield { expression: template.slice(open + 2, close) }
    at = close + 1
  }
  if (at < template.length) yield { text: template.slice(at) }
}

/** The position of the brace that closes the one just before `start`; skips braces of strings and maps in the CEL. */
function closing(template: string, start: number): number {
  let depth = 0
  for (const token of tokens(template, start)) {
    if (isOpenString(token)) break
    if (token.text === '}' && depth === 0) return token.start
    depth += nesting(token)
  }
  throw new BadExpression(`has a \`\${\` at column ${start - 1} that is not closed; end it with \`}\``)
}
