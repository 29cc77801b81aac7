import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ClientRates } from './client-rates.ts'

const rates = { requests: 1, handshakes: 0 }

function start({ maxAbsent = 4 } = {}) {
  const clock = { now: 0 }
  return { clock, sources: new ClientRates(rates, { now: () => clock.now, maxAbsent }) }
}

test('a source that disconnects and comes back does not get a fresh rate', () => {
  const { sources } = start()
  sources.enter('192.0.2.1')
  const { requests } = sources.of('192.0.2.1')
  assert.deepEqual([requests?.take(0), requests?.take(0), requests?.take(0)], [true, true, false])
  sources.leave('192.0.2.1')
  sources.enter('192.0.2.1')
  assert.equal(sources.of('192.0.2.1').requests?.take(0), false)
})

test('addresses of one IPv6 network are one source', () => {
  const { sources } = start()
  for (const ip of ['2001:db8::1', '2001:db8::2']) sources.enter(ip)
  assert.equal(sources.of('2001:db8::3').open, 2)
  assert.equal(sources.size, 1)
})

test('many sources that come and go are kept in bounded memory, and those with a connection are never forgotten', () => {
  const { sources } = start()
  sources.enter('192.0.2.1')
  const kept = sources.of('192.0.2.1')
  for (let i = 0; i < 1000; i++) {
    sources.enter(`10.0.${i >> 8}.${i & 255}`)
    sources.leave(`10.0.${i >> 8}.${i & 255}`)
  }
  for (let i = 0; i < 1000; i++) sources.of(`10.1.${i >> 8}.${i & 255}`)
  assert.equal(sources.size, 5)
  assert.equal(sources.of('192.0.2.1'), kept)
})

test('changed rates apply to a source when it is next used, and its connections are still counted', () => {
  const { sources } = start()
  for (let i = 0; i < 2; i++) sources.enter('192.0.2.1')
  assert.ok(sources.of('192.0.2.2'))
  sources.use({ requests: 0, handshakes: 3 })
  const { open, requests, handshakes } = sources.of('192.0.2.1')
  assert.deepEqual([open, requests, handshakes?.take(0)], [2, undefined, true])
  assert.equal(sources.of('192.0.2.2').requests, undefined)
  for (let i = 0; i < 2; i++) sources.leave('192.0.2.1')
  assert.equal(sources.of('192.0.2.1').open, 0)
  assert.equal(sources.size, 2)
})
