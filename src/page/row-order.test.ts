import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nextOrder, orderRows, sortOf } from './row-order.ts'

const rows = [{ n: 'b-10' }, { n: '' }, { n: 'b-9' }, { n: 'A-1' }]
const names = (isDescending: boolean) => orderRows(rows, ({ n }) => String(n), isDescending).map(({ n }) => n)

test('numbers in texts are compared as numbers, and empty values come last in both directions', () => {
  assert.deepEqual(names(false), ['A-1', 'b-9', 'b-10', ''])
  assert.deepEqual(names(true), ['b-10', 'b-9', 'A-1', ''])
})

test('numbers are ordered by size, and equal rows stay as they were', () => {
  const sizes = [
    { id: 1, size: 20 },
    { id: 2, size: 3 },
    { id: 3, size: 20 },
  ]
  const ids = (isDescending: boolean) => orderRows(sizes, ({ size }) => Number(size), isDescending).map(({ id }) => id)
  assert.deepEqual(
    [ids(false), ids(true)],
    [
      [2, 1, 3],
      [1, 3, 2],
    ],
  )
})

test('clicks on a title sort ascending, then descending, then not at all; another title starts over', () => {
  const up = nextOrder(undefined, 'name')
  const down = nextOrder(up, 'name')
  assert.deepEqual([sortOf(up, 'name'), sortOf(down, 'name'), sortOf(up, 'size')], ['ascending', 'descending', 'none'])
  assert.equal(nextOrder(down, 'name'), undefined)
  assert.deepEqual(nextOrder(down, 'size'), { by: 'size', isDescending: false })
})
