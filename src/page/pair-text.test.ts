import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pairTexts } from './pair-text.ts'

test('names with values are written like labels, other values are not', () => {
  assert.deepEqual(pairTexts({ app: 'shop', weight: 2 }), ['app=shop', 'weight=2'])
  assert.deepEqual(pairTexts({}), [])
  for (const value of [null, 'a', ['a'], { a: null }, { a: ['b'] }, { a: { b: 'c' } }]) {
    assert.equal(pairTexts(value), undefined)
  }
})
