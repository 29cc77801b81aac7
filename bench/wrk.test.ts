import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { parseTransfer, parseWrk } from './wrk.ts'

const wrk = (faults: string): string => `Running 5s test @ http://127.0.0.1:1/small
  1 threads and 64 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     4.83ms    1.05ms  19.60ms   78.55%
    Req/Sec    13.26k   596.15    14.50k    77.00%
  66000 requests in 5.00s, 78.05MB read
${faults}Requests/sec:  13200.00
Transfer/sec:     15.60MB
`

describe('the output of wrk', () => {
  test('has answers and time', () => assert.deepEqual(parseWrk(wrk('')), { amount: 66_000, seconds: 5 }))

  const faults = [
    '  Non-2xx or 3xx responses: 66000\n',
    '  Socket errors: connect 0, read 64, write 0, timeout 0\n',
    '  Socket errors: connect 0, read 0, write 0, timeout 3\n  Non-2xx or 3xx responses: 1\n',
  ]
  for (const fault of faults) {
    test(`does not count with ${fault.trim()}`, () => assert.throws(() => parseWrk(wrk(fault)), /wrk: (Non|Socket)/))
  }

  test('does not count without an answer', () => {
    assert.throws(() => parseWrk('  0 requests in 5.00s, 0.00B read\nRequests/sec:      0.00\n'), /no answers/)
  })

  test('has the bytes of a download that did not end', () => {
    const text = (speed: string): string => `  0 requests in 2.00s, 1.00GB read\nTransfer/sec:    ${speed}\n`
    assert.deepEqual(parseTransfer(text('512.50MB'), 2), { amount: 1025 * 1024 ** 2, seconds: 2 })
    assert.deepEqual(parseTransfer(text('1.50GB'), 2), { amount: 3 * 1024 ** 3, seconds: 2 })
    assert.throws(() => parseTransfer(text('0.00B'), 2), /got nothing/)
    assert.throws(() => parseTransfer(wrk(faults[0] ?? ''), 2), /wrk: Non/)
  })
})
