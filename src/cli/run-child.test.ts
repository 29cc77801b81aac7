import assert from 'node:assert/strict'
import { test } from 'node:test'
import { controlNiceness } from './run-child.ts'

test('the control process gives way to workers, and never takes back what `nice` gave away', () => {
  assert.deepEqual([-5, 0, 5, 10, 19].map(controlNiceness), [5, 5, 5, 10, 19])
})
