import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gatherMs } from './gather-time.ts'

test('a few items hardly wait for each other, and the wait of a crowd is bounded', () => {
  assert.deepEqual(
    [1, 2, 10, 15, 16, 5000].map((together) => gatherMs(together)),
    [10, 20, 100, 150, 150, 150],
  )
  assert.equal(gatherMs(5000, 20), 20)
})
