import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nearestValue, plotLine, plotTop } from './plot-line.ts'

const frame = { from: 0, to: 100, top: 10, stepMs: 10 }
const values = (...given: (readonly [at: number, value: number | null])[]) =>
  given.map(([at, value]) => ({ at, value }))

test('a line goes from the left edge to the right one, upwards with its values', () => {
  assert.equal(plotLine(values([0, 0], [10, 5], [20, 10]), frame), 'M0 100h1L100 50L200 0')
  assert.equal(plotLine([], frame), '')
})

test('it has a gap where a value or a measurement is missing', () => {
  assert.equal(plotLine(values([0, 5], [10, null], [20, 5]), frame), 'M0 50h1M200 50h1')
  assert.equal(plotLine(values([0, 5], [50, 5]), frame), 'M0 50h1M500 50h1')
})

test('values outside the time frame are left out, and values above the top are clamped to it', () => {
  assert.equal(plotLine(values([-10, 5], [0, 50], [110, 5]), frame), 'M0 0h1')
})

test('the upper edge is a round number', () => {
  const tops = [0, 0.3, 1, 1.1, 7, 10, 42, 5001].map((value) => plotTop(values([0, value])))
  assert.deepEqual(tops, [1, 0.5, 1, 2, 10, 10, 50, 10_000])
  assert.equal(plotTop(values([0, null])), 1)
})

test('the value under a pointer is the one nearest to it in time', () => {
  const given = values([-50, 1], [10, 2], [40, 3])
  assert.equal(nearestValue(given, frame, 0)?.value, 2)
  assert.equal(nearestValue(given, frame, 0.26)?.value, 3)
  assert.equal(nearestValue(given, frame, 1)?.value, 3)
  assert.equal(nearestValue([], frame, 0.5), undefined)
})
