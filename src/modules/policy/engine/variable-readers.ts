/** Reads the variables of expressions on demand, each once per evaluation, and charges for it. */
import type { CelInput } from '@bufbuild/cel'
import { HAS } from './bind-variables.ts'
import { toCel } from './cel-values.ts'
import { Fault, type Frame, type Run } from './evaluation-frame.ts'
import type { Library } from './load-cel.ts'
import type { Moment } from './moment.ts'
import type { Shape } from './policy-shape.ts'
import { payCookies, payQuery } from './request-functions.ts'
import { requestHeader } from './request-headers.ts'
import { variableValues } from './variable-values.ts'

type Known = Readonly<Record<string, Shape>>

/** In nanoseconds, as measured. */
const VARIABLE_NANOS = 600
const TIME_NANOS = 10_000
const AGENT_NANOS = 12_000
const CERTIFICATE_NANOS = 20_000
const HEADER_NANOS = 350
const FOUND_HEADER_NANOS = 20
const CHARACTER_NANOS = 40

/** The function that reads the variable `path`; `place` is its index in `Frame.values`. */
export function variableReader(path: string, slot: number, known: Known, library: Library): Run {
  if (path.startsWith(HAS)) {
    const read = readerOf(path.slice(HAS.length), known)
    return (frame) => read(frame) !== undefined
  }
  const read = readerOf(path, known)
  const missing = new Fault(`\`${path}\` is not there`)
  return (frame) => {
    const kept = frame.values[slot]
    if (kept !== undefined) return kept
    const value = read(frame)
    const made = value === undefined ? missing : toCel(library, value)
    frame.values[slot] = made
    return made
  }
}

/** Reads one entry of a map of headers, since most expressions need only one of many. */
export function entryReader(path: string, library: Library): ((frame: Frame, key: string) => unknown) | undefined {
  if (path !== 'req.headers' && path !== 'res.headers') return undefined
  return ({ moment, budget }, key) => {
    const headers = path === 'req.headers' ? moment.request && moment.headers : moment.response?.headers
    if (!headers) return undefined
    budget.charge(VARIABLE_NANOS + headers.size * FOUND_HEADER_NANOS)
    const values = path === 'req.headers' ? requestHeader(moment, key) : headers.all(key)
    return values.length > 0 ? library.cel.celList(values) : undefined
  }
}

/** Done once for an expression: all that depends on the path alone. */
function readerOf(path: string, known: Known): Run {
  const reader = Object.hasOwn(variableValues, path) ? variableValues[path] : undefined
  if (reader) {
    const pay = payerOf(path)
    return (frame) => {
      frame.budget.charge(VARIABLE_NANOS)
      pay?.(frame)
      return reader(frame.moment)
    }
  }
  const [root = '', ...names] = path.split('.')
  if (root === 'actions' && names.length > 0) return ({ moment }) => result(moment, names)
  // A record as a whole: a map of the fields that exist.
  let shape = Object.hasOwn(known, root) ? known[root] : undefined
  for (const name of names) shape = shape?.fields?.[name]
  const readers = Object.entries(shape?.fields ?? {})
    .filter(([, each]) => each.kind !== 'absent')
    .map(([name]) => [name, readerOf(`${path}.${name}`, known)] as const)
  return (frame) => {
    const fields = readers
      .map(([name, read]) => [name, read(frame)] as const)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => [name, toCel(frame.library, value)] as const)
    return fields.length === 0 ? undefined : new Map(fields as [string, CelInput][])
  }
}

/** Charges the cost of a variable beyond the price that all have. */
function payerOf(path: string): ((frame: Frame) => void) | undefined {
  if (path === 'req.headers') return ({ moment, budget }) => budget.charge(moment.headers.size * HEADER_NANOS)
  if (path === 'res.headers') {
    return ({ moment, budget }) => budget.charge((moment.response?.headers.size ?? 0) * HEADER_NANOS)
  }
  if (path === 'req.cookies') return (frame) => payCookies(frame, frame.moment.headers, 'cookie')
  if (path === 'res.cookies') {
    return (frame) => frame.moment.response && payCookies(frame, frame.moment.response.headers, 'set-cookie')
  }
  if (path === 'req.url.query_params') return (frame) => payQuery(frame, frame.moment.request?.query ?? '')
  if (path.includes('.content_')) {
    const name = path.includes('encoding') ? 'content-encoding' : 'content-type'
    return ({ moment, budget }) => {
      const headers = path.startsWith('res') ? moment.response?.headers : moment.headers
      budget.charge((headers?.get(name) ?? '').length * CHARACTER_NANOS + (headers?.size ?? 0) * FOUND_HEADER_NANOS)
    }
  }
  if (path.startsWith('req.user_agent.')) return ({ budget }) => budget.charge(AGENT_NANOS)
  if (path.startsWith('conn.tls.client')) return ({ budget }) => budget.charge(CERTIFICATE_NANOS)
  if (path.includes('.ts.')) return ({ budget }) => budget.charge(TIME_NANOS)
  return undefined
}

/** The findings of an action; undefined when it did not run. */
function result(moment: Moment, [, action, ...fields]: readonly string[]): unknown {
  if (action === undefined) return new Map(moment.results)
  return fields.length > 0 ? undefined : moment.results.get(action)
}
