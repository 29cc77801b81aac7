import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { retryDelay } from './backoff.ts'

const least = () => 0
const most = () => 1 - Number.EPSILON

describe('the wait before the next attempt', () => {
  const cases: { name: string; failures: number; isRefused?: boolean; from: number; to: number }[] = [
    { name: 'is short after a session that had lasted', failures: 0, from: 0, to: 500 },
    { name: 'is half a second at most after the first failure', failures: 1, from: 250, to: 500 },
    { name: 'doubles', failures: 4, from: 2000, to: 4000 },
    { name: 'is half a minute at most', failures: 7, from: 15_000, to: 30_000 },
    { name: 'stays so after an hour and after a year', failures: 1_000_000, from: 15_000, to: 30_000 },
    { name: 'is longer when the server refused', failures: 0, isRefused: true, from: 7500, to: 15_000 },
    {
      name: 'is two minutes at most when the server refused',
      failures: 99,
      isRefused: true,
      from: 60_000,
      to: 120_000,
    },
  ]
  for (const { name, failures, isRefused = false, from, to } of cases) {
    test(name, () => {
      assert.equal(Math.round(retryDelay({ failures, isRefused, random: least })), from)
      assert.equal(Math.round(retryDelay({ failures, isRefused, random: most })), to)
    })
  }
})
