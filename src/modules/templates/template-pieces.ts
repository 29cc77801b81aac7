/** Splits header values with `${…}` in them, and counts those. */

/** The most `${…}` in all values of one module, since each is looked up with every request. */
export const MAX_VARIABLES = 1000

/** A piece of a value: text as it is, or the name between `${` and `}`. */
type Piece = { readonly text: string } | { readonly name: string }

/** Takes one pass: searching for the end of each `${` would take quadratic time when many are never closed. */
export function* templatePieces(value: string): Generator<Piece> {
  let at = 0
  for (let open = value.indexOf('${'); open >= 0; open = value.indexOf('${', at)) {
    const close = value.indexOf('}', open)
    if (close < 0) break
    if (open > at) yield { text: value.slice(at, open) }
    yield { name: value.slice(open + 2, close) }
    at = close + 1
  }
  if (at < value.length) yield { text: value.slice(at) }
}

/** How many `${…}` are in `value`; stops counting above `MAX_VARIABLES`. */
export function countVariables(value: string): number {
  let count = 0
  for (const piece of templatePieces(value)) if ('name' in piece && ++count > MAX_VARIABLES) break
  return count
}
