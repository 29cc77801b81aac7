import assert from 'node:assert/strict'
import { test } from 'node:test'
import { durationText, fromNow, sizeText } from './time-text.ts'

const NOW = Date.parse('2026-03-01T12:00:00Z')

const cases: [seconds: number, text: string][] = [
  [0, 'just now'],
  [-30, '30 s ago'],
  [-90, '1 min ago'],
  [-7200, '2 h ago'],
  [-100 * 3600, '4 days ago'],
  [30 * 86_400, 'in 30 days'],
]
for (const [seconds, text] of cases) {
  test(`${seconds} s from now is ${text}`, () => assert.equal(fromNow(NOW + seconds * 1000, NOW), text))
}

test('a time that cannot be read is not shown', () => assert.equal(fromNow(Number.NaN, NOW), ''))

test('durations and sizes have the unit that fits', () => {
  const durations = ['0 ms', '0.3 ms', '3 ms', '12 ms', '999 ms', '1.5 s', '61 s']
  assert.deepEqual([0, 0.25, 3, 12.4, 999, 1500, 61_000].map(durationText), durations)
  assert.deepEqual([0, 999, 1500, 250_000, 7.25e9].map(sizeText), ['0 B', '999 B', '1.5 kB', '250 kB', '7.3 GB'])
})
