/** Header values with `${…}` in them: parsed once, filled in for each request (R-3.13). */
import { toHeaderValue } from '../../lib/http/http-header.ts'
import type { Incoming, RequestContext } from '../phases.ts'
import type { ModuleTools } from '../tools.ts'
import { countVariables, MAX_VARIABLES, templatePieces } from './template-pieces.ts'
import { findVariable } from './template-variables.ts'

/** What variables are read from; `response` is set only once there is one. */
export interface TemplateMoment {
  readonly ctx: RequestContext
  readonly incoming: Incoming | undefined
  readonly tools: Pick<ModuleTools, 'now' | 'region'>
}

/** A constant value, or a function that gives the value. */
export type HeaderTemplate = string | ((moment: TemplateMoment) => string)

/** A `${` that is never closed is text, and an unknown variable is empty; throws when there are too many. */
export function compileTemplate(value: string): HeaderTemplate {
  if (countVariables(value) > MAX_VARIABLES) throw new Error(`a value has over ${MAX_VARIABLES} variables`)
  const parts: HeaderTemplate[] = []
  for (const piece of templatePieces(value)) {
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
