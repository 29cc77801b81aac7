/** Turns our schemas into plain JSON Schema for the API document, so that other tools understand them. */
import type { SchemaNode } from '../../lib/shape/check.ts'

export type PublishedSchema = Readonly<Record<string, unknown>>

/** The schema of an answer. */
export function answerSchema(schema: unknown): PublishedSchema {
  return publish(schema as SchemaNode, answerSchema)
}

/** The schema of a request body: fields with a default may be left out, and null counts as left out. */
export function bodySchema(schema: unknown): PublishedSchema {
  const node = schema as SchemaNode
  const { properties, required = [] } = node
  if (!properties) return publish(node, bodySchema)
  const needed = required.filter((name) => properties[name]?.default === undefined)
  const shown = Object.entries(properties).map(([name, each]) => [
    name,
    needed.includes(name) ? bodySchema(each) : orNull(bodySchema(each)),
  ])
  const { properties: _, required: __, ...rest } = node
  return {
    ...publish(rest, bodySchema),
    ...(needed.length > 0 && { required: needed }),
    properties: Object.fromEntries(shown),
  }
}

/**
 * `node` in standard keywords; `inner` converts the schemas inside it. Our own keywords begin with `x-`, as OpenAPI
 * requires.
 */
function publish(node: SchemaNode, inner: (schema: unknown) => PublishedSchema): PublishedSchema {
  const { maxBytes, maxKeyBytes, patternProperties, properties, items, additionalProperties, ...rest } = node
  const value = patternProperties ? Object.values(patternProperties)[0] : additionalProperties
  return {
    ...(node.enum && node.type === undefined && { type: typeOfWords(node.enum) }),
    // Drops the marker of optional fields, which is not JSON.
    ...Object.fromEntries(Object.entries(rest)),
    // A text never has more characters than bytes.
    ...(maxBytes !== undefined && { maxLength: maxBytes, 'x-max-bytes': maxBytes }),
    ...(maxKeyBytes !== undefined && { 'x-max-key-bytes': maxKeyBytes }),
    ...(properties && {
      properties: Object.fromEntries(Object.entries(properties).map(([name, each]) => [name, inner(each)])),
    }),
    ...(items && { items: inner(items) }),
    ...(value !== undefined && { additionalProperties: typeof value === 'object' ? inner(value) : value }),
  }
}

function typeOfWords(words: readonly unknown[]): string {
  return words.every((word) => typeof word === 'number') ? 'integer' : 'string'
}

/**
 * Writes out what `check()` allows beyond a schema: null for an optional field. A schema without a type already takes null.
 */
function orNull(schema: PublishedSchema): PublishedSchema {
  const { type, enum: values } = schema
  if (type === undefined) return schema
  return { ...schema, type: [type, 'null'].flat(), ...(Array.isArray(values) && { enum: [...values, null] }) }
}
