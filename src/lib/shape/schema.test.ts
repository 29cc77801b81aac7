import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import type { TSchema } from 'typebox'
import { closedObject, nullable, shape, viewOf } from './schema.ts'
import { Type } from './type.ts'

const views: [what: string, form: TSchema, view: object][] = [
  ['a limit is the request’s business', Type.String({ maxBytes: 5, minLength: 1, pattern: 'x' }), { type: 'string' }],
  [
    'a description stays',
    Type.Boolean({ description: 'Why.', default: true }),
    { type: 'boolean', description: 'Why.' },
  ],
  ['the empty word of an enum is not shown', Type.Enum(['a', '']), { type: 'string', enum: ['a'] }],
  [
    'a list shows the view of its items',
    Type.Array(Type.Integer({ maximum: 2 }), { maxItems: 3 }),
    { type: 'array', items: { type: 'integer' } },
  ],
  [
    'a map becomes one that every reader knows',
    Type.Record(Type.String(), Type.String({ maxBytes: 5 }), { maxKeyBytes: 3 }),
    { type: 'object', additionalProperties: { type: 'string' } },
  ],
  [
    'every field is there, and null where nothing fills it in',
    Type.Object({ a: Type.Optional(Type.String()), b: Type.String(), c: Type.Optional(Type.String({ default: '' })) }),
    {
      type: 'object',
      additionalProperties: false,
      required: ['a', 'b', 'c'],
      properties: { a: { type: ['string', 'null'] }, b: { type: 'string' }, c: { type: 'string' } },
    },
  ],
]

for (const [what, form, view] of views) {
  test(`the view of a form: ${what}`, () => {
    assert.deepEqual(JSON.parse(JSON.stringify(viewOf(form))), view)
  })
}

test('a nullable enum has null as one of its values', () => {
  const ajv = new Ajv2020({ strict: false })
  const schema = nullable(viewOf(Type.Enum(['a', 'b'])))
  for (const [value, fits] of [
    ['a', true],
    [null, true],
    ['c', false],
    [1, false],
  ] as const) {
    assert.equal(ajv.validate(schema, value), fits, String(value))
  }
})

test('an answer has every field of its view and no others', () => {
  const view = closedObject({ a: nullable(Type.String()), b: Type.Array(closedObject({ c: nullable(Type.String()) })) })
  assert.deepEqual(shape(view, { b: [{ c: 'c', secret: 1 }, {}], secret: 1 }), {
    a: null,
    b: [{ c: 'c' }, { c: null }],
  })
  assert.equal(shape(view, undefined), null)
  assert.equal(shape(view, null), null)
})

test('any stored value, shaped by a view of nullable fields, fits that view', () => {
  const ajv = new Ajv2020({ strict: false, ownProperties: true })
  const view = closedObject({
    a: nullable(Type.Unknown()),
    b: nullable(closedObject({ c: nullable(Type.Unknown()) })),
    d: nullable(Type.Unsafe({ type: 'object', additionalProperties: true })),
  })
  const some = fc.dictionary(fc.constantFrom('a', 'b', 'c', 'd', 'e', '__proto__'), fc.constantFrom('x', 'y'))
  fc.assert(
    fc.property(fc.option(fc.record({ b: fc.option(some), d: fc.option(some), x: fc.jsonValue() })), (stored) => {
      const shown = shape(view, stored)
      if (stored === null) assert.equal(shown, null)
      else assert.ok(ajv.validate(view, JSON.parse(JSON.stringify(shown))), ajv.errorsText())
    }),
  )
})
