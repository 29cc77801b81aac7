import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BadYaml, readYaml } from './policy-yaml.ts'

const read: readonly (readonly [string, unknown])[] = [
  ['a: 1\nb: [x, "y", null, true, 1.5]\n', { a: 1, b: ['x', 'y', null, true, 1.5] }],
  ['{"a": {"b": []}}', { a: { b: [] } }],
  ['{\n\t"a": 1\n}', { a: 1 }],
  ['- on\n- yes\n- 012\n- 0x10\n- ~', ['on', 'yes', 12, 16, null]],
  ['a: |\n  one\n  two\n', { a: 'one\ntwo\n' }],
  ['a: &x [1, 2]\nb: *x\n', { a: [1, 2], b: [1, 2] }],
  ['a: &x 1\nb: *x\nc: &x 2\nd: *x\n', { a: 1, b: 1, c: 2, d: 2 }],
  ['<<: {a: 1}\nb: 2', { '<<': { a: 1 }, b: 2 }],
  ['1: one\ntrue: two', { 1: 'one', true: 'two' }],
  ['a: !!str 5', { a: '5' }],
  ['%YAML 1.1\n---\na: yes\nb: 2001-01-01\n', { a: 'yes', b: '2001-01-01' }],
  ['# nothing', null],
  ['"\\u00e9\\ud83d\\ude00"', 'é😀'],
]

for (const [text, value] of read) {
  test(`reads ${JSON.stringify(text)}`, () => assert.deepEqual(readYaml(text), value))
}

/** Each step holds the one before ten times. */
const laughs = Array.from({ length: 9 }, (_, i) => {
  const before = i === 0 ? 'lol' : `*a${i - 1}`
  return `a${i}: &a${i} [${Array(10).fill(before).join(', ')}]`
}).join('\n')

const refused: Readonly<Record<string, readonly [string, RegExp]>> = {
  'a repeated key': ['a: 1\nb: 2\na: 3', /line 3, column 1, a key stands twice/],
  'a key repeated in another spelling': ['1: a\n"1": b', /a key stands twice/],
  'the key __proto__': ['a: {__proto__: {x: 1}}', /`__proto__` is not allowed/],
  'the key __proto__ by escape': ['"__proto\\u005f_": 1', /`__proto__` is not allowed/],
  'a key that is a list': ['? [a]\n: b', /key that is not plain text/],
  'a key that is an alias': ['a: &x k\n*x : 1', /key that is not plain text/],
  'a NUL character': ['a: "x\\0y"', /line 1, column 4, a string contains a NUL/],
  'half of a surrogate pair': ['a: "\\ud800"', /not well-formed Unicode|not valid YAML/],
  'a number that is NaN': ['a: .nan', /no text, number/],
  'an infinite number': ['a: -.inf', /no text, number/],
  'a billion laughs': [laughs, /over 50000 values/],
  'an alias of itself': ['a: &a [*a]', /deeper than 32/],
  'an alias before its anchor': ['a: *x\nb: &x 1', /alias has no anchor before it/],
  'a tag of JavaScript': ['a: !!js/function "function () {}"', /unknown tag or directive at line 1, column 4/],
  'an unknown tag': ['a: !secret hunter2', /unknown tag/],
  'binary data': ['a: !!binary aGk=', /unknown tag/],
  'a set': ['a: !!set {x, y}', /unknown tag/],
  'two documents': ['a: 1\n---\nb: 2', /several YAML documents/],
  'flow lists too deep': ['['.repeat(33) + ']'.repeat(33), /deeper than 32/],
  'flow lists far too deep': ['['.repeat(60_000), /deeper than 32/],
  'maps far too deep': ['{a: '.repeat(16_000), /deeper than 32/],
  'block lists far too deep': ['- '.repeat(30_000), /deeper than 32/],
  'keys far too deep': ['? '.repeat(30_000), /deeper than 32/],
  'too much text': [`a: ${'x'.repeat(64 * 1024)}`, /too long for YAML, of which at most 65536 bytes/],
  'an open string': ['a: "hunter2', /not valid YAML at line 1/],
  'a list where a map continues': ['a: 1\n- hunter2', /not valid YAML at line/],
  'tabs for indentation': ['a:\n\tb: hunter2', /not valid YAML at line/],
}

for (const [what, [text, message]] of Object.entries(refused)) {
  test(`refuses ${what}`, () => {
    assert.throws(
      () => readYaml(text),
      (error) => {
        assert.ok(error instanceof BadYaml, String(error))
        assert.match(error.message, message)
        assert.doesNotMatch(error.message, /hunter2/)
        assert.ok(error.message.length < 300)
        return true
      },
    )
  })
}

test('reads YAML of exactly the allowed depth', () => {
  const value = readYaml('['.repeat(32) + ']'.repeat(32))
  assert.equal(JSON.stringify(value), '['.repeat(32) + ']'.repeat(32))
})
