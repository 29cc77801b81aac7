/** Values of headers with `${…}` in them: taken apart once, filled in for each request. */
import { toHeaderValue } from '../lib/http-header.ts'
import type { Incoming, ModuleTools, RequestContext } from './phases.ts'
import { findVariable } from './template-variables.ts'

/** What a variable may be read from; there is a response only on its way back. */
export interface Moment {
  readonly ctx: RequestContext
  readonly incoming: Incoming | undefined
  readonly tools: Pick<ModuleTools, 'now' | 'region'>
}

/** The value when it is always the same; else what gives it. */
export type Template = string | ((moment: Moment) => string)

/** Never throws: what has no closing brace is text, and a variable that nobody knows is empty. */
export function compileTemplate(text: string): Template {
  const parts: Template[] = []
  let at = 0
  for (const { 0: whole, 1: name = '', index } of text.matchAll(/\$\{([^}]*)\}/g)) {
    if (index > at) parts.push(toHeaderValue(text.slice(at, index)))
    // The older spelling begins with a dot.
    parts.push(findVariable(name.trim().replace(/^\./, '')))
    at = index + whole.length
  }
  if (at < text.length) parts.push(toHeaderValue(text.slice(at)))
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
