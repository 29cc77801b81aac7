/** Builds schemas: closed objects, nullable values, and the schema of an answer from that of a request. */
import type { Static, TObject, TProperties, TSchema, TUnsafe } from 'typebox'
import type { SchemaNode } from './check.ts'
import { Type } from './type.ts'

/** An object with these fields and no others. */
export function closedObject<P extends TProperties>(properties: P, options: { description?: string } = {}): TObject<P> {
  return Type.Object(properties, { additionalProperties: false, ...options })
}

/** The same schema, or null. */
export function nullable<S extends TSchema>(schema: S): TUnsafe<Static<S> | null> {
  const { type = 'string', enum: values, ...rest } = schema as SchemaNode & TSchema
  return Type.Unsafe({ ...rest, type: [type, 'null'], ...(values && { enum: [...values, null] }) })
}

/**
 * The schema of an answer, from that of the request: every field is present, and null where a request may leave it out
 * without a default. Limits apply only to requests and are left out.
 */
export function viewOf(schema: TSchema): TSchema {
  const {
    type,
    description,
    properties,
    items,
    required,
    enum: values,
    patternProperties,
  } = schema as SchemaNode & TSchema
  const about = description === undefined ? {} : { description }
  // The empty string means "unset" in requests only.
  if (values) return Type.Unsafe({ ...about, type: 'string', enum: values.filter((value) => value !== '') })
  if (type === 'object' && properties) {
    const fields = Object.entries(properties).map(([name, node]) => {
      const view = viewOf(node)
      return [name, node.default !== undefined || required?.includes(name) ? view : nullable(view)] as const
    })
    return closedObject(Object.fromEntries(fields), about)
  }
  if (type === 'object') {
    const value = patternProperties ? Object.values(patternProperties)[0] : undefined
    return Type.Unsafe({ ...about, type: 'object', additionalProperties: value ? viewOf(value as TSchema) : true })
  }
  if (type === 'array') return Type.Array(items ? viewOf(items as TSchema) : Type.Unknown(), about)
  return Type.Unsafe({ ...about, ...(type !== undefined && { type }) })
}

/** `value` with exactly the fields of `view`, null for those it lacks: nothing is missing from an answer, nothing leaks. */
export function shape(view: TSchema, value: unknown): unknown {
  const { properties, items } = view as SchemaNode
  if (value === undefined || value === null) return null
  if (Array.isArray(value)) return items ? value.map((each) => shape(items as TSchema, each)) : value
  if (!properties || typeof value !== 'object') return value
  const given = value as Readonly<Record<string, unknown>>
  return Object.fromEntries(
    Object.entries(properties).map(([name, node]) => [name, shape(node as TSchema, given[name])]),
  )
}
