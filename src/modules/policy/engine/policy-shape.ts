/** What is known about a CEL value before an expression runs: its kind, its fields, or why it is absent. */
import { nearest } from '../../../lib/text/nearest.ts'
import { BadExpression } from './cel.ts'

/** `record`: a map whose fields are known. `any`: known only when the expression runs. */
export type Kind =
  | 'bool'
  | 'string'
  | 'bytes'
  | 'int'
  | 'uint'
  | 'double'
  | 'timestamp'
  | 'duration'
  | 'null'
  | 'type'
  | 'list'
  | 'map'
  | 'record'
  | 'any'
  | 'absent'

export interface Shape {
  readonly kind: Kind
  /** A string may have fields too: `req.url` is the URL, `req.url.path` a part of it. */
  readonly fields?: Readonly<Record<string, Shape>>
  /** The shape of the items of a list or map. */
  readonly items?: Shape
  /** Why it is absent, as the end of a sentence. */
  readonly why?: string
}

export const any: Shape = { kind: 'any' }
export const bool: Shape = { kind: 'bool' }
export const string: Shape = { kind: 'string' }
export const int: Shape = { kind: 'int' }
export const timestamp: Shape = { kind: 'timestamp' }

export const list = (items: Shape): Shape => ({ kind: 'list', items })
export const map = (items: Shape): Shape => ({ kind: 'map', items })
export const record = (fields: Readonly<Record<string, Shape>>): Shape => ({ kind: 'record', fields })
export const stringWith = (fields: Readonly<Record<string, Shape>>): Shape => ({ kind: 'string', fields })
export const absent = (why: string): Shape => ({ kind: 'absent', why })

/** The shape of the field `name` of the value that messages call `of`; throws `BadExpression` when it cannot exist. */
export function member(of: string, shape: Shape, name: string): Shape {
  if (shape.kind === 'any') return any
  if (shape.kind === 'map') return shape.items ?? any
  if (!shape.fields)
    throw new BadExpression(`reads \`${brief(name)}\` of ${of}, which is ${kindName(shape)} and has no fields`)
  const found = Object.hasOwn(shape.fields, name) ? shape.fields[name] : undefined
  if (found === undefined) throw new BadExpression(unknown('field', name, Object.keys(shape.fields), ` of ${of}`))
  if (found.kind === 'absent') throw new BadExpression(`reads \`${name}\` of ${of}, ${found.why}`)
  return found
}

/** The message about an unknown name, with the one that was probably meant. */
export function unknown(what: string, name: string, known: readonly string[], where = ''): string {
  const meant = name.length > 64 ? undefined : nearest(name, known)
  const remedy = meant !== undefined ? `did you mean \`${meant}\`?` : listKnown(known)
  return `names an unknown ${what}${where}, \`${brief(name)}\`; ${remedy}`
}

function listKnown(known: readonly string[]): string {
  if (known.length > MAX_LISTED) return 'check its spelling'
  return `known are ${known.map((name) => `\`${name}\``).join(', ')}`
}

/** A longer list of known names would bury the message. */
const MAX_LISTED = 20

export function kindName({ kind }: Shape): string {
  return kindNames[kind] ?? `a ${kind}`
}

const kindNames: Readonly<Partial<Record<Kind, string>>> = {
  any: 'a value',
  bytes: 'bytes',
  int: 'a number',
  uint: 'an unsigned number',
  double: 'a number with a fraction',
  null: 'null',
  record: 'a map',
}

/** Shortens a name for a message: a hostile name can be as long as a whole expression. */
export function brief(name: string): string {
  return name.length > 64 ? `${name.slice(0, 61)}...` : name
}
