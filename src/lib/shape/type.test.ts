import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Type as TypeBox } from 'typebox'
import { Type } from './type.ts'

type Words = typeof Type

const made: Readonly<Record<string, (t: Words) => unknown>> = {
  'a string with limits': (t) => t.String({ minLength: 1, maxBytes: 5, description: 'Why.' }),
  'a whole number': (t) => t.Integer({ minimum: 0 }),
  'a number': (t) => t.Number(),
  'a boolean with a default': (t) => t.Boolean({ default: true }),
  null: (t) => t.Null(),
  anything: (t) => t.Unknown({ description: 'Any.' }),
  'one of some words': (t) => t.Enum(['a', 'b', ''], { default: 'a' }),
  'a list': (t) => t.Array(t.String(), { maxItems: 3 }),
  'a map': (t) => t.Record(t.String(), t.Integer(), { maxKeyBytes: 3 }),
  'a schema of our own': (t) => t.Unsafe({ type: ['string', 'null'] }),
  'a closed object': (t) => t.Object({ a: t.String() }, { additionalProperties: false }),
  'an object without required fields': (t) => t.Object({ a: t.Optional(t.String()) }),
  'an empty object': (t) => t.Object({}),
  'objects inside each other': (t) =>
    t.Object({
      a: t.Optional(t.Array(t.Object({ b: t.String(), c: t.Optional(t.Unsafe({ type: 'string' })) }))),
      d: t.Object({ e: t.Optional(t.String()) }),
    }),
}
for (const [name, make] of Object.entries(made)) {
  test(`${name} gives the same JSON Schema as TypeBox`, () => {
    assert.deepEqual(json(make(Type)), json(make(TypeBox)))
  })
}

test('a field stays optional when its schema is extended', () => {
  const extended = { ...Type.Optional(Type.String()), description: 'Why.' }
  assert.deepEqual(json(Type.Object({ a: extended })), {
    type: 'object',
    properties: { a: { type: 'string', description: 'Why.' } },
  })
})

/** The schema as callers see it, without TypeBox's visible marks. */
function json(schema: unknown): unknown {
  return JSON.parse(JSON.stringify(schema, (key, value: unknown) => (key.startsWith('~') ? undefined : value)))
}
