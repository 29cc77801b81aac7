/** Converts between values of CEL and plain ones. */
import type { CelInput, CelMap, CelValue } from '@bufbuild/cel'
import type { Budget } from './budget.ts'
import { Fault } from './evaluation-frame.ts'
import type { Library } from './load-cel.ts'
import type { Cel } from './tree.ts'
import { Instant } from './variable-values.ts'

/** How deep lists and maps may be nested in a value that is read. */
const MAX_DEPTH = 16

/** The cost of reading a value, and a character of it, when it is written out or taken apart. */
const VALUE_NANOS = 200
const CHARACTER_NANOS = 6
/** The cost of starting on a list or a map. */
const GROUP_NANOS = 1500
/** The cost of reading an entry of a map. */
const ENTRY_NANOS = 10

/** Walks through all of a value and charges for it on the way. */
export function payFor(cel: Cel, value: unknown, budget: Budget, depth = 0): void {
  budget.charge(VALUE_NANOS)
  if (typeof value === 'string' || value instanceof Uint8Array) budget.charge(value.length * CHARACTER_NANOS)
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return
  budget.charge(GROUP_NANOS)
  if (cel.isCelList(value)) for (const item of value) payFor(cel, item, budget, depth + 1)
  else if (cel.isCelMap(value)) {
    for (const [key, item] of value) {
      payFor(cel, key, budget, depth + 1)
      payFor(cel, item, budget, depth + 1)
    }
  }
}

/** Converts the result of a function or a variable to a value of CEL. */
export function toCel(library: Library, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || value instanceof Fault) return value
  const { celList, celMap } = library.cel
  if (Array.isArray(value)) return celList(value as CelInput[])
  if (value instanceof Map) return celMap(value as Map<string, CelInput>)
  if (value instanceof Instant) return library.timestamp(value.millis)
  if (Object.getPrototypeOf(value) === Object.prototype) return celMap(new Map(Object.entries(value)))
  return value
}

/** Converts a JSON value at every depth at once; otherwise the library would convert an object at each access. */
export function fromJson(cel: Cel, value: unknown): CelInput {
  if (Array.isArray(value)) return cel.celList(value.map((item) => fromJson(cel, item)))
  if (typeof value !== 'object' || value === null) return value as CelInput // there is nothing else in JSON
  return cel.celMap(new Map(Object.entries(value).map(([name, item]) => [name, fromJson(cel, item)])))
}

/** The entry of `map` under `key`, where 1, 1u and 1.0 are the same key; undefined when there is none. */
export function entryOf(cel: Cel, map: CelMap, key: unknown, budget: Budget): unknown {
  if (typeof key === 'string' || typeof key === 'boolean') return map.get(key)
  if (typeof key !== 'bigint' && typeof key !== 'number' && !cel.isCelUint(key)) return undefined
  // The library walks through the whole map to find a key that is an unsigned number.
  budget.charge(map.size * ENTRY_NANOS)
  return map.get(key)
}

/** A value as plain data: integers as numbers where they fit, times and durations as texts. */
export function plainValue(library: Library, value: CelValue, depth = 0): unknown {
  if (depth > MAX_DEPTH) throw new Error('the value is nested too deep')
  if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : String(value)
  if (typeof value !== 'object' || value === null) return value
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64')
  const { isCelUint, isCelList, isCelMap } = library.cel
  if (isCelUint(value)) return plainValue(library, value.value)
  if (isCelList(value)) return Array.from(value, (item) => plainValue(library, item, depth + 1))
  if (isCelMap(value)) {
    return Object.fromEntries(Array.from(value, ([key, item]) => [keyText(key), plainValue(library, item, depth + 1)]))
  }
  return textOf(library, value)
}

function keyText(key: unknown): string {
  if (typeof key === 'object' && key !== null && 'value' in key) return String(key.value)
  return String(key)
}

/** A value as text, for `${…}` in other text. */
export function textOf(library: Library, value: CelValue): string {
  if (typeof value === 'string') return value
  if (typeof value === 'bigint' || typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (value === null) return 'null'
  if (value instanceof Uint8Array) return Buffer.from(value).toString('utf8')
  const { isCelUint, isCelList, isCelMap, isCelType } = library.cel
  if (isCelList(value) || isCelMap(value)) return JSON.stringify(plainValue(library, value))
  if (isCelUint(value)) return String(value.value)
  if (isCelType(value)) return value.name
  const text = library.call('string', undefined, [value])
  if (typeof text !== 'string') throw new Error('the value cannot be written as text')
  return text
}
