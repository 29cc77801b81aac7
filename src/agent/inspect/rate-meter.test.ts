import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RateMeter } from './rate-meter.ts'

test('a meter knows counts, open events and durations', () => {
  let time = 0
  const meter = new RateMeter(() => time)
  for (let i = 1; i <= 100; i++) {
    meter.began()
    if (i > 1) meter.ended(i)
  }
  const { count, gauge, p50, p90, p95, p99 } = meter.figures
  assert.deepEqual([count, gauge], [100, 1])
  assert.deepEqual([p50, p90, p95, p99], [51e6, 91e6, 96e6, 100e6])
  time = 1
  assert.equal(meter.figures.rate1, 0, 'no interval has passed')
})

test('rates follow what happens, the short ones faster', () => {
  let time = 0
  const meter = new RateMeter(() => time)
  for (let i = 0; i < 50; i++) meter.began()
  time += 5000
  assert.deepEqual([meter.figures.rate1, meter.figures.rate5, meter.figures.rate15], [10, 10, 10])
  time += 60_000
  const { rate1, rate5, rate15 } = meter.figures
  assert.ok(Math.abs(rate1 - 10 / Math.E) < 0.01)
  assert.ok(rate1 < rate5 && rate5 < rate15 && rate15 < 10)
  time += 24 * 3600 * 1000
  assert.ok(meter.figures.rate15 < 1e-6)
})
