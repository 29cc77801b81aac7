/** Reads the header rules of a bind: `name:value` to add, names to remove. */
import { isConnectionHeader, isHeaderName, isHeaderValue } from '../../lib/http/http-header.ts'
import { Type } from '../../lib/shape/type.ts'
import { isEdgeHeader } from '../../model/header-rules.ts'
import type { HeaderSettings } from '../headers/header-changes.ts'
import {
  firstTooMany,
  MAX_HEADERS,
  MAX_NAME_BYTES,
  MAX_VALUE_BYTES,
  TOO_MANY_VARIABLES,
} from '../headers/header-form.ts'
import { BadOption, fieldsOf } from './values.ts'

const form = Type.Object({
  add: Type.Array(Type.String(), { default: [] }),
  remove: Type.Array(Type.String(), { default: [] }),
  // Set by the vendor's server; values from agents are ignored.
  addparsed: Type.Optional(Type.Unknown()),
})

/** The vendor's error numbers; some of them differ between requests and responses. */
const numbers = { request: { pair: 370, name: 372 }, response: { pair: 371, name: 373 } } as const
const BAD_VALUE = 374
const TWO_SPELLINGS = 375
const TOO_MANY = 376
const NAME_TOO_LONG = 377
const VALUE_TOO_LONG = 378
const HOST_REMOVED = 398

export function readHeaders(side: keyof typeof numbers) {
  return (value: unknown, name: string): HeaderSettings | undefined => {
    const given = fieldsOf(form, value, name)
    for (const list of ['add', 'remove'] as const) {
      if (given[list].length > MAX_HEADERS) {
        throw new BadOption(TOO_MANY, `\`${name}.${list}\` has more than ${MAX_HEADERS} headers`)
      }
    }
    const add = given.add.map((pair) => readPair(pair, side))
    const excess = firstTooMany(add)
    if (excess !== undefined)
      throw new BadOption(BAD_VALUE, `the header \`${excess}\` of \`${name}\` ${TOO_MANY_VARIABLES}`)
    for (const header of given.remove) checkName(header, side)
    checkSpellings(add.map(([header]) => header))
    const added = new Set(add.map(([header]) => header.toLowerCase()))
    for (const header of added) checkAdded(header, side)
    for (const header of given.remove) checkRemoved(header.toLowerCase(), side, added)
    return add.length + given.remove.length === 0 ? undefined : { add, remove: given.remove }
  }
}

function readPair(pair: string, side: keyof typeof numbers): [string, string] {
  const colon = pair.indexOf(':')
  if (colon < 0) throw new BadOption(numbers[side].pair, `a header to add to a ${side} must be \`name:value\``)
  const [name, value] = [pair.slice(0, colon).trim(), pair.slice(colon + 1).trim()]
  checkName(name, side)
  if (Buffer.byteLength(value) > MAX_VALUE_BYTES) {
    throw new BadOption(VALUE_TOO_LONG, `the value of \`${name}\` has more than ${MAX_VALUE_BYTES} bytes`)
  }
  if (!isHeaderValue(value)) throw new BadOption(BAD_VALUE, `the value of \`${name}\` has a control character`)
  return [name, value]
}

function checkName(name: string, side: keyof typeof numbers): void {
  if (Buffer.byteLength(name) > MAX_NAME_BYTES) {
    throw new BadOption(NAME_TOO_LONG, `the header name that begins with \`${name.slice(0, 20)}\` is too long`)
  }
  const code = numbers[side].name
  if (!isHeaderName(name)) throw new BadOption(code, `\`${name}\` is not the name of a header`)
  if (name.toLowerCase() === 'user-agent') throw new BadOption(code, '`user-agent` cannot be changed')
  if (isConnectionHeader(name)) {
    throw new BadOption(code, `\`${name}\` belongs to the connection; only the edge sets it`)
  }
}

/** One name may have several values. In two spellings, one of them is probably a mistake. */
function checkSpellings(names: readonly string[]): void {
  const seen = new Map<string, string>()
  for (const name of names) {
    const before = seen.get(name.toLowerCase())
    if (before !== undefined && before !== name) {
      throw new BadOption(TWO_SPELLINGS, `\`${before}\` and \`${name}\` are the same header; use one spelling`)
    }
    seen.set(name.toLowerCase(), name)
  }
}

function checkAdded(name: string, side: keyof typeof numbers): void {
  if (isEdgeHeader(name)) {
    throw new BadOption(numbers[side].name, `\`${name}\` begins with \`postern-\`, which only the edge sets`)
  }
}

/** The same rules as for the modules of a route. */
function checkRemoved(name: string, side: keyof typeof numbers, added: ReadonlySet<string>): void {
  if (side === 'response' && isEdgeHeader(name)) {
    throw new BadOption(numbers[side].name, `\`${name}\` begins with \`postern-\`, which only the edge sets`)
  }
  if (side === 'request' && name === 'host' && !added.has(name)) {
    throw new BadOption(HOST_REMOVED, '`host` cannot be removed without a new value in `add`')
  }
}
