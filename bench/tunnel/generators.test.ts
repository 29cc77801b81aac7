import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { parseIperf } from './generators.ts'

describe('the output of iperf3', () => {
  test('has the bytes that the receiving end got', () => {
    const end = { sum_sent: { bytes: 900, seconds: 1 }, sum_received: { bytes: 800, seconds: 1.25 } }
    assert.deepEqual(parseIperf(JSON.stringify({ start: {}, end })), { amount: 800, seconds: 1.25 })
  })

  test('has the reason if nothing got through', () => {
    assert.throws(() => parseIperf('{"start":{},"end":{},"error":"connection refused"}'), /connection refused/)
    assert.throws(() => parseIperf('{"end":{"sum_received":{"bytes":0,"seconds":5}}}'), /nothing/)
  })
})
