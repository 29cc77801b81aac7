import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { isId } from '../lib/ids.ts'
import { exchangeId, readExchangeId, tagOf } from './exchange-id.ts'

const parts = fc.record(
  {
    endedAt: fc.integer({ min: 0, max: 2 ** 48 - 1 }),
    number: fc.integer({ min: 0, max: 2 ** 48 - 1 }),
    nodeTag: fc.string().map(tagOf),
    planeTag: fc.string().map(tagOf),
  },
  { noNullPrototype: true },
)

test('an id contains all its parts, and has the form of an id', () => {
  fc.assert(
    fc.property(parts, (given) => {
      const id = exchangeId(given)
      assert.ok(isId(id, 'ex_'))
      assert.deepEqual(readExchangeId(id), given)
    }),
  )
})

test('ids sort by their end, then by their number', () => {
  fc.assert(
    fc.property(parts, parts, (a, b) => {
      const order = a.endedAt - b.endedAt || a.number - b.number
      if (order !== 0) assert.equal(exchangeId(a) < exchangeId(b), order < 0)
    }),
  )
})

for (const text of ['', 'ex_', 'ex_1', `tn_${'1'.repeat(27)}`, `ex_${'z'.repeat(27)}`, `ex_${'-'.repeat(27)}`]) {
  test(`not an exchange id: ${text}`, () => assert.equal(readExchangeId(text), undefined))
}
