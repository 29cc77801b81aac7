import assert from 'node:assert/strict'
import { test } from 'node:test'
import { check } from '../../lib/shape/check.ts'
import { circuitBreaker } from './form.ts'

function put(body: unknown): unknown {
  assert.ok(circuitBreaker.at.route)
  return check(circuitBreaker.at.route, body)
}

test('fills in defaults', () => {
  assert.deepEqual(put({}), {
    enabled: true,
    tripped_duration: 10,
    rolling_window: 10,
    num_buckets: 10,
    volume_threshold: 20,
    error_threshold_percentage: 0.5,
  })
})

const bounds: Readonly<Record<string, { taken: readonly number[]; refused: readonly unknown[] }>> = {
  tripped_duration: { taken: [1, 4_294_967_295], refused: [0, -1, 1.5, 4_294_967_296, '10'] },
  rolling_window: { taken: [1, 4_294_967_295], refused: [0, -1, 1.5, 4_294_967_296] },
  num_buckets: { taken: [1, 128], refused: [0, 129, 2.5] },
  volume_threshold: { taken: [0, 4_294_967_295], refused: [-1, 0.5, 4_294_967_296] },
  error_threshold_percentage: { taken: [0, 0.25, 1], refused: [-0.01, 1.01, 50, '0.5'] },
}

for (const [field, { taken, refused }] of Object.entries(bounds)) {
  test(`holds the bounds of ${field}`, () => {
    for (const value of taken) put({ [field]: value })
    for (const value of refused) assert.throws(() => put({ [field]: value }), { name: 'BadValue', field })
  })
}
