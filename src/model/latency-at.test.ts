import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { latencyAt } from '../control-plane/traffic/traffic-counts.ts'

const bounds = [1, 10, 100]

test('a percentile is interpolated within its step', () => {
  assert.equal(latencyAt(bounds, [10, 0, 0, 0], 0.5), 0.5)
  assert.equal(latencyAt(bounds, [5, 5, 0, 0], 0.75), 5.5)
  assert.equal(latencyAt(bounds, [0, 0, 4, 0], 1), 100)
})

test('a value beyond all bounds is reported as the last bound, and no values as null', () => {
  assert.equal(latencyAt(bounds, [0, 0, 0, 3], 0.5), 100)
  assert.equal(latencyAt(bounds, [0, 0, 0, 0], 0.5), null)
  assert.equal(latencyAt([], [], 0.99), null)
})

test('a higher percentile is never lower', () => {
  const steps = fc.array(fc.nat(1000), { minLength: 4, maxLength: 4 })
  const part = fc.double({ min: 0.01, max: 1, noNaN: true })
  fc.assert(
    fc.property(steps, part, part, (counts, a, b) => {
      const [low, high] = [latencyAt(bounds, counts, Math.min(a, b)), latencyAt(bounds, counts, Math.max(a, b))]
      if (low === null || high === null) assert.ok(counts.every((count) => count === 0))
      else assert.ok(low <= high + 1e-9)
    }),
  )
})
