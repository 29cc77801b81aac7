/** Values of headers with `${…}` in them: taken apart once, filled in for each request (R-3.13). */
import { toHeaderValue } from '../../lib/http/http-header.ts'
import type { Incoming, RequestContext } from '../phases.ts'
import type { ModuleTools } from '../tools.ts'
import { findVariable } from './template-variables.ts'

/** What a variable may be read from; there is a response only on its way back. */
export interface Moment {
  readonly ctx: RequestContext
  readonly incoming: Incoming | undefined
  readonly tools: Pick<ModuleTools, 'now' | 'region'>
}

/** The value when it is always the same; else what gives it. */
export type Template = string | ((moment: Moment) => string)

/** `${…}` in all values of one module: each is looked up with every request. */
export const MAX_VARIABLES = 1000

/** A piece of a value: text as it is, or the name between `${` and `}`. */
type Piece = { readonly text: string } | { readonly name: string }

/** In one pass: a search for each `${` would read on to the end for every one that is never closed. */
function* pieces(value: string): Generator<Piece> {
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

/** How many `${…}` are in `value`; stops to count above `MAX_VARIABLES`. */
export function countVariables(value: string): number {
  let count = 0
  for (const piece of pieces(value)) if ('name' in piece && ++count > MAX_VARIABLES) break
  return count
}

/** What has no closing brace is text, and a variable that nobody knows is empty; throws for too many of them. */
export function compileTemplate(value: string): Template {
  if (countVariables(value) > MAX_VARIABLES) throw new Error(`a value has over ${MAX_VARIABLES} variables`)
  const parts: Template[] = []
  for (const piece of pieces(value)) {
    // The older spelling begins with a dot.
    if ('name' in piece) parts.push(findVariable(piece.name.trim().replace(/^\./, '')))
    else parts.push(toHeaderValue(piece.text))
  }
  if (parts.every((part) => typeof part === 'string')) return parts.join('')
  return (moment) => {
    let value = ''
    for (const part of parts) value += typeof part === 'string' ? part : harmless(part(moment))
    return value
  }
}

/** Headers are held as bytes, so those beyond ASCII are fine as they are; what is no byte was never a header. */
function harmless(value: string): string {
  if (/^[\t\x20-\x7e\x80-\xff]*$/.test(value)) return value
  const clean = value.replace(/[^\t\x20-\x7e\x80-\u{10ffff}]/gu, '')
  return /^[\0-\xff]*$/.test(clean) ? clean : toHeaderValue(clean)
}
