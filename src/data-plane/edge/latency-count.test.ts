import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LatencyCount, latencyBounds } from './latency-count.ts'

test('a request counts at the first bound that it stayed within, and beyond all of them when it took longer', () => {
  const latency = new LatencyCount()
  const took = [0, 1, 1.5, 5, 9, 60_000, 60_001, 3_600_000]
  for (const ms of took) latency.note(ms)
  const counted = [...latency.steps]
    .map((count, i) => [latencyBounds[i] ?? Infinity, count])
    .filter(([, count]) => count)
  assert.deepEqual(counted, [
    [1, 2],
    [2, 1],
    [5, 1],
    [10, 1],
    [60_000, 1],
    [Infinity, 2],
  ])
  assert.equal(
    latency.sumMs,
    took.reduce((sum, ms) => sum + ms),
  )
})

test('bounds ascend', () => {
  assert.deepEqual(
    latencyBounds.toSorted((a, b) => a - b),
    latencyBounds,
  )
})
