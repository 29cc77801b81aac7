import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Ajv } from 'ajv'
import fc from 'fast-check'
import type { TSchema } from 'typebox'
import { BadValue, type BadValueKind, check, type SchemaNode } from './check.ts'
import { Type } from './type.ts'

const text = Type.String({ maxBytes: 10 })
const closed = (properties: Record<string, TSchema>) => Type.Object(properties, { additionalProperties: false })

const refused: [what: string, schema: TSchema, value: unknown, field: string, kind: BadValueKind, message: RegExp][] = [
  ['a number for a string', text, 1, '', 'type', /^the body must be a string, not a number$/],
  ['null for a string', text, null, '', 'type', /not null$/],
  ['nothing for a string', text, undefined, '', 'type', /not nothing$/],
  ['a list for a string', text, [], '', 'type', /not a list$/],
  ['an object for a string', text, {}, '', 'type', /not an object$/],
  ['eleven bytes', text, 'ééééé!', '', 'too_long', /^the body is 11 bytes long; at most 10 are allowed$/],
  ['a NUL', text, 'a\0', '', 'value', /NUL/],
  ['half of a surrogate pair', text, '\ud83d', '', 'value', /well-formed/],
  ['an empty string', Type.String({ minLength: 1 }), '', '', 'value', /must not be empty$/],
  ['a text off its pattern', Type.String({ pattern: '^[a-z]*$' }), 'A', '', 'value', /must match/],
  ['a word for a boolean', Type.Boolean(), 'true', '', 'type', /must be true or false, not a string$/],
  ['a number for a boolean', Type.Boolean(), 1, '', 'type', /not a number$/],
  ['a fraction', Type.Integer(), 1.5, '', 'type', /must be a whole number/],
  ['digits in quotes', Type.Integer(), '1', '', 'type', /not a string$/],
  ['infinity', Type.Number(), Number.POSITIVE_INFINITY, '', 'type', /must be a number/],
  ['not a number', Type.Number(), Number.NaN, '', 'type', /must be a number/],
  ['too small', Type.Integer({ minimum: 1 }), 0, '', 'value', /must be 1 or more$/],
  ['too large', Type.Integer({ maximum: 9 }), 10, '', 'value', /must be 9 or less$/],
  ['out of range', Type.Integer({ minimum: 1, maximum: 9 }), -1, '', 'value', /between 1 and 9$/],
  ['another word', Type.Enum(['a', 'b', '']), 'c', '', 'value', /one of `a`, `b`$/],
  ['a name every object has', Type.Enum(['a']), 'constructor', '', 'value', /must be `a`$/],
  ['a string for a list', Type.Array(text), 'a', '', 'type', /must be a list, not a string$/],
  ['an object for a list', Type.Array(text), {}, '', 'type', /must be a list, not an object$/],
  ['a list too long', Type.Array(text, { maxItems: 1 }), ['a', 'b'], '', 'value', /2 entries; at most 1 are/],
  ['a list too short', Type.Array(text, { minItems: 1 }), [], '', 'value', /at least 1 entry$/],
  ['a bad entry', Type.Array(text), ['a', 1], '[1]', 'type', /^`\[1\]` must be a string/],
  ['null in a list', Type.Array(text), [null], '[0]', 'type', /not null$/],
  ['a list for an object', closed({ a: text }), [], '', 'type', /must be a JSON object, not a list$/],
  ['null for an object', closed({ a: text }), null, '', 'type', /not null$/],
  ['a missing field', closed({ a: text }), {}, 'a', 'required', /^`a` is required$/],
  ['null for a required field', closed({ a: text }), { a: null }, 'a', 'required', /^`a` is required$/],
  [
    'a field deep inside',
    closed({ a: Type.Array(closed({ b: text })) }),
    { a: [{ b: 1 }] },
    'a[0].b',
    'type',
    /`a\[0\].b`/,
  ],
  ['a mistyped field', closed({ name: text }), { nmae: '' }, 'nmae', 'unknown_field', /did you mean `name`\?$/],
  ['an unknown field', closed({ name: text }), { q: '' }, 'q', 'unknown_field', /known fields are `name`$/],
  ['any field where none is', closed({}), { q: '' }, 'q', 'unknown_field', /no fields are accepted here$/],
  ['an unknown field that is null', closed({ name: text }), { q: null }, 'q', 'unknown_field', /not a known field/],
  ['a field every object has', closed({}), { toString: '' }, 'toString', 'unknown_field', /not a known field/],
  ['the key __proto__', closed({}), JSON.parse('{"__proto__":1}'), '__proto__', 'unknown_field', /not a known field/],
  ['a string for a map', Type.Record(Type.String(), text), 'a', '', 'type', /must be a JSON object/],
  ['null in a map', Type.Record(Type.String(), text), { a: null }, '["a"]', 'type', /not null$/],
  ['a bad value in a map', Type.Record(Type.String(), text), { 'a"b': 1 }, '["a\\"b"]', 'type', /must be a string/],
  [
    'a long key',
    Type.Record(Type.String(), text, { maxKeyBytes: 3 }),
    { éé: '' },
    '',
    'too_long',
    /a key of .* 4 bytes/,
  ],
  ['a NUL in a key', Type.Record(Type.String(), text), { '\0': '' }, '', 'value', /a key of .* NUL/],
  ['half a pair in a key', Type.Record(Type.String(), text), { '\ude00': '' }, '', 'value', /a key of .* Unicode/],
  ['many keys', Type.Record(Type.String(), text, { maxProperties: 1 }), { a: '', b: '' }, '', 'value', /at most 1/],
  ['no keys', Type.Record(Type.String(), text, { minProperties: 2 }), {}, '', 'value', /at least 2 entries$/],
  [
    'a string where one object will do',
    Type.Array(closed({}), { 'x-or-one': true }),
    'a',
    '',
    'type',
    /must be a list/,
  ],
]

for (const [what, schema, value, field, kind, message] of refused) {
  test(`refuses ${what}, naming the field`, () => {
    assert.throws(
      () => check(schema, value),
      (error) => {
        assert.ok(error instanceof BadValue)
        assert.deepEqual({ field: error.field, kind: error.kind }, { field, kind })
        assert.match(error.message, message)
        return true
      },
    )
  })
}

const taken: [what: string, schema: TSchema, value: unknown, checked: unknown][] = [
  ['ten bytes', text, 'ééééé', 'ééééé'],
  ['null as absent', closed({ a: Type.Optional(text), b: text }), { a: null, b: 'b' }, { b: 'b' }],
  ['null as absent, filled in', closed({ a: Type.String({ default: 'x' }) }), { a: null }, { a: 'x' }],
  ['nothing, filled in', closed({ a: Type.Array(text, { default: [] }) }), {}, { a: [] }],
  ['the empty string over a default', closed({ a: Type.String({ default: 'x' }) }), { a: '' }, { a: '' }],
  ['one object as a list of one', Type.Array(closed({ a: text }), { 'x-or-one': true }), { a: '' }, [{ a: '' }]],
  ['the empty word of an enum', Type.Enum(['a', '']), '', ''],
  ['minus zero', Type.Integer({ minimum: 0 }), -0, -0],
  ['anything where anything goes', closed({ a: Type.Unknown() }), { a: [{ b: null }] }, { a: [{ b: null }] }],
]

for (const [what, schema, value, checked] of taken) {
  test(`accepts ${what}`, () => {
    assert.deepEqual(check(schema, value), checked)
  })
}

test('a map is returned without a prototype, whatever its keys', () => {
  const map = check(Type.Record(Type.String(), text), JSON.parse('{"__proto__":"a","constructor":"b"}'))
  assert.equal(Object.getPrototypeOf(map), null)
  assert.deepEqual(Object.entries(map), [
    ['__proto__', 'a'],
    ['constructor', 'b'],
  ])
})

test('a default is returned as a copy', () => {
  const schema = closed({ a: Type.Array(text, { default: [] }) })
  const first = check(schema, {}) as { a: string[] }
  first.a.push('changed')
  assert.deepEqual(check(schema, {}), { a: [] })
})

test('a name as long as a body is not repeated in full', () => {
  const long = 'x'.repeat(1_000_000)
  for (const [schema, value] of [
    [closed({ name: text }), { [long]: 1 }],
    [Type.Record(Type.String(), text), { [long]: 1 }],
    [closed({ a: text }), { a: long }],
    [Type.Enum(['a']), long],
  ] as const) {
    assert.throws(
      () => check(schema, value),
      (error: Error) => error.message.length < 400,
    )
  }
})

test('a schema of an unknown kind is a defect of our code, not of the value', () => {
  assert.throws(
    () => check(Type.Null(), null),
    (error) => error instanceof Error && !(error instanceof BadValue),
  )
})

/** No newline, which TypeBox's pattern for any key does not match; no NUL and no lone surrogates, see above. */
const word = fc.oneof(
  fc.constantFrom('', 'a', 'b', 'abc', 'A1', '0', 'true', 'constructor', 'toString', 'é', '😀'),
  fc.string({ unit: 'grapheme-ascii', maxLength: 4 }),
)
const range = (min: number, max: number) =>
  fc.option(fc.integer({ min, max }), { nil: undefined, freq: 2 }).map((n) => n ?? undefined)

const { schema: schemas } = fc.letrec<{ schema: SchemaNode }>((tie) => ({
  schema: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    some({ type: fc.constant('string'), minLength: range(0, 1), pattern: fc.option(pattern(), { nil: undefined }) }),
    some({ type: fc.constant('boolean') }),
    some({ type: fc.constantFrom('integer', 'number'), minimum: range(-2, 1), maximum: range(0, 3) }),
    some({ enum: fc.uniqueArray(word, { minLength: 1, maxLength: 3 }) }),
    some({}),
    some({ type: fc.constant('array'), items: tie('schema'), minItems: range(0, 1), maxItems: range(0, 2) }),
    some({
      type: fc.constant('object'),
      additionalProperties: tie('schema'),
      minProperties: range(0, 1),
      maxProperties: range(0, 2),
    }),
    tie('schema').map((node) => ({ type: 'object', patternProperties: { '^.*$': node } })),
    fc
      .dictionary(fc.constantFrom('a', 'b', 'constructor'), fc.tuple(tie('schema'), fc.boolean()), { maxKeys: 3 })
      .map((known) => ({
        type: 'object',
        additionalProperties: false,
        properties: Object.fromEntries(Object.entries(known).map(([name, [node]]) => [name, node])),
        required: Object.keys(known).filter((name) => known[name]?.[1]),
      })),
  ),
}))

const anything = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    word,
    fc.boolean(),
    fc.constantFrom(0, -0, 1, -1, 2, 3, 1.5, 1e21),
    fc.constant(null),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(fc.oneof(fc.constantFrom('a', 'b', 'constructor', '__proto__'), word), tie('value'), { maxKeys: 3 }),
  ),
})).value

/** A value that mostly fits, so that both results are common; `anything` in some places. */
function fitting(schema: SchemaNode): fc.Arbitrary<unknown> {
  return fc.oneof({ weight: 12, arbitrary: fits(schema) }, { weight: 1, arbitrary: anything })
}

function fits(schema: SchemaNode): fc.Arbitrary<unknown> {
  if (schema.enum) return fc.constantFrom(...schema.enum)
  switch (schema.type) {
    case 'string':
      return word
    case 'boolean':
      return fc.boolean()
    case 'integer':
    case 'number':
      return fc.constantFrom(-2, -1, 0, 0.5, 1, 2, 3)
    case 'array':
      return fc.array(fitting(schema.items ?? {}), { maxLength: 2 })
    case 'object': {
      const each = mapNode(schema)
      if (each) return fc.dictionary(word, fitting(each), { maxKeys: 2 })
      const known = Object.entries(schema.properties ?? {}).map(([name, node]) => [name, fitting(node)] as const)
      return fc.record(Object.fromEntries(known), { requiredKeys: [...(schema.required ?? [])] })
    }
    case undefined:
      return anything
    default:
      throw new Error(`no values are known for the type ${schema.type}`)
  }
}

test('it agrees with Ajv, except that a null field is absent, and returns accepted values unchanged', () => {
  const ajv = new Ajv({ strict: false, ownProperties: true })
  let taken = 0
  let total = 0
  fc.assert(
    fc.property(
      schemas.chain((schema) => fc.tuple(fc.constant(schema), fitting(schema))),
      ([schema, value]) => {
        const seen = withoutNulls(schema, value)
        const expected = ajv.validate(schema, seen)
        let verdict = true
        total++
        try {
          const checked = check(schema as TSchema, value)
          taken++
          assert.deepEqual(plain(checked), plain(seen))
        } catch (error) {
          if (!(error instanceof BadValue)) throw error
          verdict = false
        }
        assert.equal(verdict, expected, `Ajv: ${ajv.errorsText()}`)
      },
    ),
    { numRuns: 1500 },
  )
  assert.ok(taken > total / 5 && taken < (total * 9) / 10, `${taken} of ${total} were taken: too lopsided to tell much`)
})

/** D10, for the oracle: a field that is null is absent. In lists and maps null is a value like any other. */
function withoutNulls(schema: SchemaNode, value: unknown): unknown {
  if (Array.isArray(value)) return schema.items ? value.map((each) => withoutNulls(schema.items ?? {}, each)) : value
  if (typeof value !== 'object' || value === null || schema.type !== 'object') return value
  const each = mapNode(schema)
  const known = schema.properties ?? {}
  const entries = Object.entries(value).filter(([name, field]) => !Object.hasOwn(known, name) || field !== null)
  return Object.fromEntries(entries.map(([name, field]) => [name, withoutNulls(each ?? own(known, name) ?? {}, field)]))
}

function mapNode(schema: SchemaNode): SchemaNode | undefined {
  if (typeof schema.additionalProperties === 'object') return schema.additionalProperties
  return schema.patternProperties?.['^.*$']
}

function own<T>(record: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(record, name) ? record[name] : undefined
}

function plain(value: unknown): unknown {
  return value === undefined ? undefined : JSON.parse(JSON.stringify(value))
}

function pattern(): fc.Arbitrary<string> {
  return fc.constantFrom('^[a-z]*$', '^.{0,2}$', '[0-9]')
}

/** Drops undefined keywords, which a schema must not have. */
function some(parts: Record<string, fc.Arbitrary<unknown>>): fc.Arbitrary<SchemaNode> {
  return fc
    .record(parts)
    .map((node) => Object.fromEntries(Object.entries(node).filter(([, value]) => value !== undefined)) as SchemaNode)
}
