import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deserialize, serialize } from 'node:v8'
import { plainCopy } from './plain-copy.ts'

class Named {
  readonly name = 'n'
  readonly #hidden = 'h'

  get hidden(): string {
    return this.#hidden
  }
}

const values: Readonly<Record<string, unknown>> = {
  nothing: null,
  'not set': undefined,
  texts: ['', 'a', '\ud800'],
  numbers: [0, -0, 1.5, Number.NaN, 2n],
  objects: { a: { b: [{ c: undefined }, []] }, d: {} },
  'an object without a prototype': Object.assign(Object.create(null), { a: 1 }),
  'a key that is no prototype': JSON.parse('{"a":{"__proto__":{"isAdmin":true}}}'),
  bytes: [Buffer.from('abc'), new Uint8Array([1, 2])],
  'maps, sets and dates': { map: new Map([['a', { b: 1 }]]), set: new Set([1]), date: new Date(5) },
  'an object of a class': { named: new Named() },
}

for (const [name, value] of Object.entries(values)) {
  test(`a copy is what a socket would carry: ${name}`, () => {
    assert.deepStrictEqual(plainCopy(value), deserialize(serialize(value)))
  })
}

test('a copy shares nothing with what was copied', () => {
  const value = { list: [{ a: 1 }], bytes: new Uint8Array([1]) }
  const copy = plainCopy(value) as typeof value
  value.list[0] = { a: 2 }
  value.bytes[0] = 2
  assert.deepEqual([copy.list, [...copy.bytes]], [[{ a: 1 }], [1]])
})

test('values that cannot be sent are refused', () => {
  for (const value of [() => {}, Symbol('a'), { a: [() => {}] }, { a: Promise.resolve() }]) {
    assert.throws(() => plainCopy(value), /could not be cloned/)
  }
})
