import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TSchema } from 'typebox'
import { BadValue, check, type SchemaNode } from '../../lib/shape/check.ts'
import { Type } from '../../lib/shape/type.ts'
import { answerSchema, bodySchema, type PublishedSchema } from './openapi-schemas.ts'
import { routeTable } from './routes.ts'

const shown: [what: string, schema: TSchema, published: PublishedSchema][] = [
  ['a limit in bytes', Type.String({ maxBytes: 9 }), { type: 'string', maxLength: 9, 'x-max-bytes': 9 }],
  ['words', Type.Enum(['a', 'b']), { type: 'string', enum: ['a', 'b'] }],
  ['numbers to choose from', Type.Enum([1, 2]), { type: 'integer', enum: [1, 2] }],
  [
    'a map',
    Type.Record(Type.String(), Type.Integer(), { maxKeyBytes: 5 }),
    { type: 'object', additionalProperties: { type: 'integer' }, 'x-max-key-bytes': 5 },
  ],
  [
    'a list',
    Type.Array(Type.String({ maxBytes: 1 })),
    { type: 'array', items: answerSchema(Type.String({ maxBytes: 1 })) },
  ],
]
for (const [what, schema, published] of shown) {
  test(`${what} is shown in standard keywords`, () => {
    assert.deepEqual(answerSchema(schema), published)
    assert.deepEqual(bodySchema(schema), published)
  })
}

test('a body schema shows which fields may be left out, and that null means the same', () => {
  const schema = Type.Object({
    needed: Type.String(),
    filled: Type.Integer({ default: 1 }),
    maybe: Type.Optional(Type.Enum(['a'])),
    any: Type.Optional(Type.Unknown()),
  })
  assert.deepEqual(bodySchema(schema), {
    type: 'object',
    required: ['needed'],
    properties: {
      needed: { type: 'string' },
      filled: { type: ['integer', 'null'], default: 1 },
      maybe: { type: ['string', 'null'], enum: ['a', null] },
      any: {},
    },
  })
})

test('body fields take null exactly where the document says so', () => {
  let fields = 0
  for (const { body, operation } of routeTable()) {
    if (!body) continue
    for (const [name, published] of Object.entries(bodySchema(body).properties as Record<string, PublishedSchema>)) {
      const saysNull = published.type === undefined || [published.type].flat().includes('null')
      assert.equal(saysNull, takesNull(body, name), `${operation}: ${name}`)
      fields++
    }
  }
  assert.ok(fields > 100)
})

/** Whether an otherwise valid body may have null for a field. */
function takesNull(body: TSchema, name: string): boolean {
  const { properties = {}, required = [] } = body as SchemaNode
  const alone = {
    type: 'object',
    properties: { [name]: properties[name] },
    required: required.filter((each) => each === name),
  }
  try {
    check(alone as unknown as TSchema, { [name]: null })
    return true
  } catch (error) {
    if (error instanceof BadValue && error.kind === 'required') return false
    throw error
  }
}
