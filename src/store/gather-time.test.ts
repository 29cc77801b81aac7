import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gatherMs } from './gather-time.ts'

test('few hardly wait for one another, and a crowd waits no longer than it must', () => {
  assert.deepEqual(
    [1, 2, 10, 15, 16, 5000].map((together) => gatherMs(together)),
    [10, 20, 100, 150, 150, 150],
  )
  assert.equal(gatherMs(5000, 20), 20)
})
