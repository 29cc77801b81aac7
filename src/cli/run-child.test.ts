import assert from 'node:assert/strict'
import { test } from 'node:test'
import { controlNiceness } from './run-child.ts'

test('the control process yields to workers, and never raises a priority that `nice` lowered', () => {
  assert.deepEqual([-5, 0, 5, 10, 19].map(controlNiceness), [5, 5, 5, 10, 19])
})
