/** Checks values from outside against a schema. */
import type { Static, TSchema } from 'typebox'
import { nearest } from '../text/nearest.ts'
import { countOf } from '../text/plural.ts'

export type BadValueKind = 'unknown_field' | 'required' | 'type' | 'too_long' | 'value'

/** A value that does not fit its schema. `field` is its path, cut when it is very long, or `''` for the whole value. */
export class BadValue extends Error {
  readonly field: string
  readonly kind: BadValueKind

  constructor(field: string, kind: BadValueKind, message: string) {
    super(message)
    this.name = 'BadValue'
    this.field = shorten(field)
    this.kind = kind
  }
}

/**
 * The part of JSON Schema that our schemas use. They are plain JSON Schema (built with TypeBox), so the OpenAPI document uses
 * the same ones.
 */
export interface SchemaNode {
  readonly type?: string
  readonly description?: string
  readonly enum?: readonly unknown[]
  readonly properties?: Readonly<Record<string, SchemaNode>>
  readonly required?: readonly string[]
  /** A schema makes the object a map; `false` forbids further fields. */
  readonly additionalProperties?: SchemaNode | boolean
  readonly patternProperties?: Readonly<Record<string, SchemaNode>>
  readonly items?: SchemaNode
  readonly default?: unknown
  readonly minLength?: number
  /** Limit of a string in UTF-8 bytes. */
  readonly maxBytes?: number
  /** Limit of each key of a map in UTF-8 bytes. */
  readonly maxKeyBytes?: number
  readonly pattern?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly minItems?: number
  readonly maxItems?: number
  readonly minProperties?: number
  readonly maxProperties?: number
  /** Whether the list may also be given as a single item. */
  readonly 'x-or-one'?: boolean
}

/**
 * Checks `value` against `schema` and returns it with defaults filled in; throws `BadValue`.
 *
 * Walks the value along its schema once. Written by hand because general validators lack three things: limits in bytes
 * (`maxBytes`), `null` read as absent, and maps rebuilt without a prototype.
 */
export function check<S extends TSchema>(schema: S, value: unknown): Static<S> {
  // The walk below builds exactly what the schema describes; TypeScript cannot follow that through the recursion.
  return walk(schema, value, '') as Static<S>
}

function walk(schema: SchemaNode, value: unknown, at: string): unknown {
  if (schema.enum) return oneOf(schema.enum, value, at)
  switch (schema.type) {
    case undefined:
      return value
    case 'string':
      return string(schema, value, at)
    case 'boolean':
      if (typeof value !== 'boolean') throw wrongType(at, 'true or false', value)
      return value
    case 'integer':
    case 'number':
      return number(schema, value, at)
    case 'array':
      return list(schema, value, at)
    case 'object':
      if (!isObject(value)) throw wrongType(at, 'a JSON object', value)
      return schema.properties ? fields(schema, schema.properties, value, at) : map(schema, value, at)
    default:
      throw new Error(`schema type ${schema.type} is not one that check() knows`)
  }
}

function oneOf(allowed: readonly unknown[], value: unknown, at: string): unknown {
  if (allowed.includes(value)) return value
  const names = allowed.filter((v) => v !== '').map((v) => `\`${String(v)}\``)
  const meant =
    typeof value === 'string' && allowed.length > EASY_TO_SCAN ? nearest(value, allowed.map(String)) : undefined
  const hint = meant === undefined ? '' : `; did you mean \`${meant}\`?`
  throw new BadValue(
    at,
    'value',
    `${nameOf(at)} must be ${names.length > 1 ? 'one of ' : ''}${names.join(', ')}${hint}`,
  )
}

/** A list of up to this many choices needs no hint. */
const EASY_TO_SCAN = 5

function string(schema: SchemaNode, value: unknown, at: string): string {
  if (typeof value !== 'string') throw wrongType(at, 'a string', value)
  if (value.includes('\0')) throw new BadValue(at, 'value', `${nameOf(at)} must not contain a NUL character`)
  if (!value.isWellFormed()) throw new BadValue(at, 'value', `${nameOf(at)} must be well-formed Unicode`)
  if (schema.minLength !== undefined && value.length < schema.minLength) {
    throw new BadValue(at, 'value', `${nameOf(at)} must not be empty`)
  }
  if (schema.maxBytes !== undefined) checkBytes(schema.maxBytes, value, at, nameOf(at))
  if (schema.pattern !== undefined && !new RegExp(schema.pattern, 'u').test(value)) {
    throw new BadValue(at, 'value', `${nameOf(at)} must match ${schema.pattern}`)
  }
  return value
}

function checkBytes(limit: number, text: string, at: string, what: string): void {
  const bytes = Buffer.byteLength(text)
  if (bytes > limit) {
    throw new BadValue(at, 'too_long', `${what} is ${bytes} bytes long; at most ${limit} are allowed`)
  }
}

function number(schema: SchemaNode, value: unknown, at: string): number {
  const kind = schema.type === 'integer' ? 'a whole number' : 'a number'
  if (typeof value !== 'number' || !Number.isFinite(value)) throw wrongType(at, kind, value)
  if (schema.type === 'integer' && !Number.isInteger(value)) throw wrongType(at, kind, value)
  const { minimum = Number.NEGATIVE_INFINITY, maximum = Number.POSITIVE_INFINITY } = schema
  if (value < minimum || value > maximum) {
    throw new BadValue(at, 'value', `${nameOf(at)} must be ${range(minimum, maximum)}`)
  }
  return value
}

function range(minimum: number, maximum: number): string {
  if (maximum === Number.POSITIVE_INFINITY) return `${minimum} or more`
  if (minimum === Number.NEGATIVE_INFINITY) return `${maximum} or less`
  return `between ${minimum} and ${maximum}`
}

function list(schema: SchemaNode, value: unknown, at: string): unknown[] {
  const isOne = isObject(value) || (typeof value === 'string' && schema.items?.type === 'string')
  const items = schema['x-or-one'] && isOne ? [value] : value
  if (!Array.isArray(items)) throw wrongType(at, 'a list', value)
  if (schema.maxItems !== undefined && items.length > schema.maxItems) {
    throw new BadValue(at, 'value', `${nameOf(at)} has ${items.length} entries; at most ${schema.maxItems} are allowed`)
  }
  if (schema.minItems !== undefined && items.length < schema.minItems) {
    throw new BadValue(at, 'value', `${nameOf(at)} needs at least ${countOf(schema.minItems, 'entry')}`)
  }
  const item = schema.items
  return item ? items.map((each, i) => walk(item, each, `${at}[${i}]`)) : [...items]
}

function fields(
  schema: SchemaNode,
  known: Readonly<Record<string, SchemaNode>>,
  value: Record<string, unknown>,
  at: string,
): Record<string, unknown> {
  for (const name of Object.keys(value)) {
    if (!Object.hasOwn(known, name)) throw unknownField(join(at, name), name, Object.keys(known))
  }
  const checked: Record<string, unknown> = {}
  for (const [name, node] of Object.entries(known)) {
    // D10: null means absent.
    const given = Object.hasOwn(value, name) ? (value[name] ?? undefined) : undefined
    if (given !== undefined) checked[name] = walk(node, given, join(at, name))
    else if (node.default !== undefined) checked[name] = structuredClone(node.default)
    else if (schema.required?.includes(name)) {
      throw new BadValue(join(at, name), 'required', `${nameOf(join(at, name))} is required`)
    }
  }
  return checked
}

/** A map from names to values of one kind, as an object without a prototype, so that no key has a special meaning. */
function map(schema: SchemaNode, value: Record<string, unknown>, at: string): Record<string, unknown> {
  const entries = Object.entries(value)
  if (schema.maxProperties !== undefined && entries.length > schema.maxProperties) {
    throw new BadValue(
      at,
      'value',
      `${nameOf(at)} has ${entries.length} entries; at most ${schema.maxProperties} are allowed`,
    )
  }
  if (schema.minProperties !== undefined && entries.length < schema.minProperties) {
    throw new BadValue(at, 'value', `${nameOf(at)} needs at least ${countOf(schema.minProperties, 'entry')}`)
  }
  const node = mapValue(schema)
  const checked: Record<string, unknown> = Object.create(null)
  for (const [key, each] of entries) {
    if (key.includes('\0')) throw new BadValue(at, 'value', `a key of ${nameOf(at)} contains a NUL character`)
    if (!key.isWellFormed()) throw new BadValue(at, 'value', `a key of ${nameOf(at)} is not well-formed Unicode`)
    if (schema.maxKeyBytes !== undefined) checkBytes(schema.maxKeyBytes, key, at, `a key of ${nameOf(at)}`)
    checked[key] = node ? walk(node, each, `${at}[${JSON.stringify(key)}]`) : each
  }
  return checked
}

/** TypeBox writes a record's value schema under `patternProperties`. */
function mapValue(schema: SchemaNode): SchemaNode | undefined {
  if (typeof schema.additionalProperties === 'object') return schema.additionalProperties
  return schema.patternProperties ? Object.values(schema.patternProperties)[0] : undefined
}

function unknownField(at: string, name: string, known: readonly string[]): BadValue {
  const meant = nearest(name, known)
  const remedy = meant
    ? `did you mean \`${meant}\`?`
    : known.length > 0
      ? `known fields are ${known.map((k) => `\`${k}\``).join(', ')}`
      : 'no fields are accepted here'
  return new BadValue(at, 'unknown_field', `${nameOf(at)} is not a known field; ${remedy}`)
}

function wrongType(at: string, wanted: string, value: unknown): BadValue {
  return new BadValue(at, 'type', `${nameOf(at)} must be ${wanted}, not ${typeName(value)}`)
}

function typeName(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object') return 'an object'
  return typeof value === 'undefined' ? 'nothing' : `a ${typeof value}`
}

function nameOf(at: string): string {
  return at === '' ? 'the body' : `\`${shorten(at)}\``
}

/** A hostile key can be as long as a body, but our answer must not be. */
function shorten(text: string): string {
  return text.length > 120 ? `${text.slice(0, 117)}...` : text
}

function join(at: string, name: string): string {
  return at === '' ? name : `${at}.${name}`
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
