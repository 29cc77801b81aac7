import assert from 'node:assert/strict'
import { test } from 'node:test'
import { admissionOf, listenerLimits } from './tunnel-limits.ts'

test('the doors of several planes together admit what one would, and each admits somebody', () => {
  assert.deepEqual(admissionOf(listenerLimits, 1), { unproven: 4096, unprovenPerIp: 256, failuresPerMinute: 60 })
  assert.deepEqual(admissionOf(listenerLimits, 4), { unproven: 1024, unprovenPerIp: 64, failuresPerMinute: 15 })
  assert.equal(admissionOf({ ...listenerLimits, unprovenPerIp: 2 }, 8).unprovenPerIp, 1)
})
