import assert from 'node:assert/strict'
import { test } from 'node:test'
import { laidOut } from './laid-out.ts'

test('JSON gets a line for each field', () => {
  for (const value of [{}, [], [[], {}], { a: [1, 'b,{"c":[]}', null], d: { e: true } }, ['"\\'], { '': '\u2028' }]) {
    assert.equal(laidOut(JSON.stringify(value)), JSON.stringify(value, null, 2))
    assert.equal(laidOut(JSON.stringify(value, null, 7)), JSON.stringify(value, null, 2))
  }
})

test('only the whitespace between tokens is changed', () => {
  assert.equal(
    laidOut('{"id":12345678901234567890,"x":1.0,"x":2}'),
    '{\n  "id": 12345678901234567890,\n  "x": 1.0,\n  "x": 2\n}',
  )
})

test('what is not JSON, or is long, stays as it is', () => {
  for (const text of ['', 'plain', '{"a":', '{a:1}', `[${'1,'.repeat(300_000)}1]`]) assert.equal(laidOut(text), text)
})

test('JSON that is very deep stays as it is', () => {
  for (const depth of [101, 200_000]) {
    const deep = '['.repeat(depth) + ']'.repeat(depth)
    assert.equal(laidOut(deep), deep)
  }
  assert.equal(laidOut('['.repeat(100) + ']'.repeat(100)).split('\n').length, 199)
})
