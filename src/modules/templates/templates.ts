/** Header values with `${…}` in them: parsed once, filled in for each request (R-3.13). */
import { toHeaderValue } from '../../lib/http/http-header.ts'
import type { Incoming, RequestContext } from '../phases.ts'
import type { ModuleTools } from '../tools.ts'
import { findVariable } from './template-variables.ts'

/** What variables are read from; `response` is set only once there is one. */
export interface TemplateMoment {
  readonly ctx: RequestContext
  readonly incoming: Incoming | undefined
  readonly tools: Pick<ModuleTools, 'now' | 'region'>
}

/** A constant value, or a function that gives the value. */
export type HeaderTemplate = string | ((moment: TemplateMoment) => string)

/** The most `${…}` in all values of one module, since each is looked up with every request. */
export const MAX_VARIABLES = 1000

/** A piece of a value: text as it is, or the name between `${` and `}`. */
type Piece = { readonly text: string } | { readonly name: string }

/** Takes one pass: searching for the end of each `${` would take quadratic time when many are never closed. */
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

/** How many `${…}` are in `value`; stops counting above `MAX_VARIABLES`. */
export function countVariables(value: string): number {
  let count = 0
  for (const piece of pieces(value)) if ('name' in piece && ++count > MAX_VARIABLES) break
  return count
}

/** A `${` that is never closed is text, and an unknown variable is empty; throws when there are too many. */
export function compileTemplate(value: string): HeaderTemplate {
  if (countVariables(value) > MAX_VARIABLES) throw new Error(`a value has over ${MAX_VARIABLES} variables`)
  const parts: HeaderTemplate[] = []
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

/** Removes what no header may hold. Headers are held as bytes, one for each character, so those above ASCII are fine. */
function harmless(value: string): string {
  if (/^[\t\x20-\x7e\x80-\xff]*$/.test(value)) return value
  const clean = value.replace(/[^\t\x20-\x7e\x80-\u{10ffff}]/gu, '')
  return /^[\0-\xff]*$/.test(clean) ? clean : toHeaderValue(clean)
}
