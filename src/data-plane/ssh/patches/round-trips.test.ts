import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Protocol } from 'ssh2'
import { RoundTrips } from './round-trips.ts'

function setUp() {
  const handlers: Record<string, () => void> = {}
  let sent = 0
  const protocol = { ping: () => void sent++, _handlers: handlers, _kexinit: undefined as Buffer | undefined }
  const line = { bytesOut: 0 }
  const trips = new RoundTrips(protocol as unknown as Protocol, () => line.bytesOut)
  return { trips, protocol, line, answer: () => handlers.REQUEST_FAILURE?.(), sent: () => sent }
}

test('there is no measurement before the first answer', () => {
  const { trips, answer, sent } = setUp()
  assert.equal(trips.lastMs, undefined)
  trips.measure()
  assert.deepEqual([trips.lastMs, sent()], [undefined, 1])
  answer()
  assert.ok(trips.lastMs !== undefined && trips.lastMs >= 0)
})

test('one keep-alive at a time is sent, and none during a key exchange', () => {
  const { trips, protocol, answer, sent } = setUp()
  trips.measure()
  trips.measure()
  assert.equal(sent(), 1)
  answer()
  protocol._kexinit = Buffer.alloc(0)
  trips.measure()
  assert.equal(sent(), 1)
})

test('keep-alives of others count too, and are never held back', () => {
  const { trips, protocol, answer, sent } = setUp()
  protocol.ping()
  trips.measure()
  assert.equal(sent(), 1)
  answer()
  assert.ok(trips.lastMs !== undefined)
})

test('an unexpected answer is ignored, and a client that leaves hundreds unanswered is not measured', () => {
  const { trips, protocol, answer, sent } = setUp()
  answer()
  assert.equal(trips.lastMs, undefined)
  for (let i = 0; i < 500; i++) protocol.ping()
  assert.equal(sent(), 500)
  for (let i = 0; i < 500; i++) answer()
  trips.measure()
  assert.deepEqual([trips.lastMs, sent()], [undefined, 500])
})

test('an answer proves what was sent before its keep-alive, and nothing that was sent later', () => {
  const { trips, protocol, line, answer } = setUp()
  line.bytesOut = 500
  protocol.ping()
  line.bytesOut = 2000
  protocol.ping()
  assert.equal(trips.unansweredBytes, 2000)
  answer()
  assert.equal(trips.unansweredBytes, 1500)
  line.bytesOut = 5000
  answer()
  answer()
  assert.equal(trips.unansweredBytes, 3000)
})
