/** Reads the header rules of a bind: `name:value` to add, names to remove. */
import { isConnectionHeader, isHeaderName, isHeaderValue } from '../../lib/http/http-header.ts'
import { Type } from '../../lib/shape/type.ts'
import { refusals } from '../../model/agent-errors.ts'
import { isEdgeHeader } from '../../model/header-rules.ts'
import type { HeaderSettings } from '../headers/header-form.ts'
import {
  firstTooMany,
  MAX_HEADERS,
  MAX_NAME_BYTES,
  MAX_VALUE_BYTES,
  TOO_MANY_VARIABLES,
} from '../headers/header-form.ts'
import { fieldsOf } from './values.ts'

const form = Type.Object({
  add: Type.Array(Type.String(), { default: [] }),
  remove: Type.Array(Type.String(), { default: [] }),
  // Set by the vendor's server; values from agents are ignored.
  addparsed: Type.Optional(Type.Unknown()),
})

/** The vendor has different numbers for requests and responses. */
const sides = {
  request: { pair: refusals.requestPair, name: refusals.badRequestHeader },
  response: { pair: refusals.responsePair, name: refusals.badResponseHeader },
} as const

export function readHeaders(side: keyof typeof sides) {
  return (value: unknown, name: string): HeaderSettings | undefined => {
    const given = fieldsOf(form, value, name)
    for (const list of ['add', 'remove'] as const) {
      if (given[list].length > MAX_HEADERS) {
        throw refusals.tooManyHeaders(`${name}.${list}`, MAX_HEADERS)
      }
    }
    const add = given.add.map((pair) => readPair(pair, side))
    const excess = firstTooMany(add)
    if (excess !== undefined)
      throw refusals.badHeaderValue(`the header \`${excess}\` of \`${name}\` ${TOO_MANY_VARIABLES}`)
    for (const header of given.remove) checkName(header, side)
    checkSpellings(add.map(([header]) => header))
    const added = new Set(add.map(([header]) => header.toLowerCase()))
    for (const header of added) checkAdded(header, side)
    for (const header of given.remove) checkRemoved(header.toLowerCase(), side, added)
    return add.length + given.remove.length === 0 ? undefined : { add, remove: given.remove }
  }
}

function readPair(pair: string, side: keyof typeof sides): [string, string] {
  const colon = pair.indexOf(':')
  if (colon < 0) throw sides[side].pair()
  const [name, value] = [pair.slice(0, colon).trim(), pair.slice(colon + 1).trim()]
  checkName(name, side)
  if (Buffer.byteLength(value) > MAX_VALUE_BYTES) {
    throw refusals.headerValueTooLong(name, MAX_VALUE_BYTES)
  }
  if (!isHeaderValue(value)) throw refusals.badHeaderValue(`the value of \`${name}\` has a control character`)
  return [name, value]
}

function checkName(name: string, side: keyof typeof sides): void {
  if (Buffer.byteLength(name) > MAX_NAME_BYTES) {
    throw refusals.headerNameTooLong(name)
  }
  const refuse = sides[side].name
  if (!isHeaderName(name)) throw refuse(`\`${name}\` is not the name of a header`)
  if (name.toLowerCase() === 'user-agent') throw refuse('`user-agent` cannot be changed')
  if (isConnectionHeader(name)) {
    throw refuse(`\`${name}\` belongs to the connection; only the edge sets it`)
  }
}

/** One name may have several values. In two spellings, one of them is probably a mistake. */
function checkSpellings(names: readonly string[]): void {
  const seen = new Map<string, string>()
  for (const name of names) {
    const before = seen.get(name.toLowerCase())
    if (before !== undefined && before !== name) {
      throw refusals.twoSpellings(before, name)
    }
    seen.set(name.toLowerCase(), name)
  }
}

function checkAdded(name: string, side: keyof typeof sides): void {
  if (isEdgeHeader(name)) {
    throw sides[side].name(`\`${name}\` begins with \`postern-\`, which only the edge sets`)
  }
}

/** The same rules as for the modules of a route. */
function checkRemoved(name: string, side: keyof typeof sides, added: ReadonlySet<string>): void {
  if (side === 'response' && isEdgeHeader(name)) {
    throw sides[side].name(`\`${name}\` begins with \`postern-\`, which only the edge sets`)
  }
  if (side === 'request' && name === 'host' && !added.has(name)) {
    throw refusals.hostRemoved()
  }
}
