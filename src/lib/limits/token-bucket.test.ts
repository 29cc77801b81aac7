import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TokenBucket } from './token-bucket.ts'

/** The number of `tries` that pass at `now`. */
function taken(bucket: TokenBucket, now: number, tries = 100): number {
  return Array.from({ length: tries }, () => bucket.take(now)).filter(Boolean).length
}

test('twice the rate passes at once, then the rate every second', () => {
  const bucket = new TokenBucket(10, 0)
  assert.equal(taken(bucket, 0), 20)
  assert.equal(taken(bucket, 500), 5)
  assert.equal(taken(bucket, 1500), 10)
})

test('unused tokens are saved for two seconds, not longer', () => {
  const bucket = new TokenBucket(1, 0)
  assert.equal(taken(bucket, 3_600_000), 2)
})

test('a caller that asks too often still gets the rate', () => {
  const bucket = new TokenBucket(1, 0)
  taken(bucket, 0)
  let passed = 0
  for (let now = 10; now <= 10_000; now += 10) if (bucket.take(now)) passed++
  assert.equal(passed, 10)
})
