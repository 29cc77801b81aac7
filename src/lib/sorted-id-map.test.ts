import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { SortedIdMap } from './sorted-id-map.ts'

test('after any additions and removals, a page is the same as from sorting everything', () => {
  const id = fc.integer({ min: 0, max: 30 }).map((n) => `x_${String(n).padStart(2, '0')}`)
  const step = fc.record({ isAdd: fc.boolean(), id })
  const page = fc.record({ beforeId: fc.option(id, { nil: undefined }), limit: fc.integer({ min: 1, max: 5 }) })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), page, (steps, { beforeId, limit }) => {
      const shelf = new SortedIdMap<string>()
      const model = new Set<string>()
      for (const { isAdd, id } of steps) {
        if (isAdd) shelf.add(id, id)
        else shelf.delete(id)
        if (isAdd) model.add(id)
        else model.delete(id)
      }
      const sorted = [...model].sort().reverse()
      const expected = sorted.filter((each) => beforeId === undefined || each < beforeId).slice(0, limit)
      assert.deepEqual(shelf.page(beforeId === undefined ? { limit } : { beforeId, limit }), expected)
      assert.equal(shelf.size, model.size)
    }),
  )
})

test('adding a thing under an existing id replaces the old one', () => {
  const shelf = new SortedIdMap<number>()
  shelf.add('a', 1)
  shelf.add('a', 2)
  assert.equal(shelf.get('a'), 2)
  assert.deepEqual(shelf.page({ limit: 10 }), [2])
})

test('ids added from newest to oldest are in order, and can be removed and added again', () => {
  const shelf = new SortedIdMap<string>()
  const ids = Array.from({ length: 100 }, (_, n) => `x_${String(n).padStart(3, '0')}`)
  for (const id of ids.toReversed()) shelf.add(id, id)
  assert.deepEqual(shelf.page({ limit: 200 }), ids.toReversed())
  for (const id of ids.slice(0, 50)) shelf.delete(id)
  for (const id of ids.slice(0, 50).toReversed()) shelf.add(id, id)
  shelf.delete('x_010')
  assert.deepEqual(shelf.page({ limit: 3, beforeId: 'x_012' }), ['x_011', 'x_009', 'x_008'])
  assert.equal(shelf.size, 99)
})
