import assert from 'node:assert/strict'
import { test } from 'node:test'
import { renewalTime, retryPause, urgentTime } from './order-times.ts'

const HOUR_MS = 3_600_000
const quarter = { notBefore: 0, notAfter: 90 * 24 * HOUR_MS }

test('a certificate is renewed at two thirds of its life, at the latest a thirtieth later', () => {
  assert.equal(
    renewalTime(quarter, () => 0),
    60 * 24 * HOUR_MS,
  )
  assert.equal(
    renewalTime(quarter, () => 1),
    63 * 24 * HOUR_MS,
  )
  assert.equal(
    renewalTime({ notBefore: 0, notAfter: 6 * 60_000 }, () => 0),
    4 * 60_000,
  )
})

test('a renewal waits for its turn until a tenth of the life is left, and never during the last hour', () => {
  assert.equal(urgentTime(quarter), 81 * 24 * HOUR_MS)
  assert.equal(urgentTime({ notBefore: 0, notAfter: 6 * HOUR_MS }), 5 * HOUR_MS)
  for (const minutes of [1, 10, 60]) {
    const life = { notBefore: 0, notAfter: minutes * 60_000 }
    assert.ok(urgentTime(life) <= renewalTime(life, () => 0), 'one that lives for minutes never waits')
  }
})

test('pauses grow fourfold from seconds to six hours', () => {
  const longest = [1, 2, 3, 4, 5, 6, 7, 50].map((failures) => retryPause(failures, () => 1) / 1000)
  assert.deepEqual(longest, [15, 60, 240, 960, 3840, 15_360, 21_600, 21_600])
  assert.equal(
    retryPause(1, () => 0),
    7500,
  )
})

test('an authority sees about five failures in the first hour, and few after it', () => {
  const seen = (ms: number) => {
    let failures = 1
    for (let at = retryPause(1, () => 0.5); at < ms; at += retryPause(failures, () => 0.5)) failures++
    return failures
  }
  assert.equal(seen(HOUR_MS), 5)
  assert.equal(seen(24 * HOUR_MS), 11)
})

test('a certificate that lives for minutes does not wait for hours', () => {
  const tenMinutes = { notBefore: 0, notAfter: 600_000 }
  assert.equal(
    retryPause(9, () => 1, { life: tenMinutes }),
    60_000,
  )
  assert.equal(
    retryPause(9, () => 1, { life: { notBefore: 0, notAfter: 1000 } }),
    15_000,
  )
})
