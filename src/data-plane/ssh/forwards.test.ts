import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Tunnel } from '../tunnel/session-types.ts'
import { type Forward, Forwards } from './forwards.ts'

/** The part of a tunnel that a forward uses. */
function tunnel(id: string, proto: string, hostport = 'a.example:443'): Tunnel {
  return { id, endpoint: { proto, open: { hostport } } } as unknown as Tunnel
}

function forward(address: string, port: number): Forward {
  return { asked: { address, port }, reply: { accept() {}, reject() {} } }
}

test('a client is told the port that it asked for, or for 0 one that no other forward has', () => {
  const forwards = new Forwards()
  const announced = [443, 0, 0, 0].map((port, i) => {
    const each = forward('', port)
    forwards.add(each)
    return forwards.begin(each, tunnel(`tn_${i}`, 'https'))
  })
  assert.deepEqual(announced, [443, 40_000, 40_001, 40_002])
})

test('for TCP it is told the real port, and for plain HTTP 80', () => {
  const forwards = new Forwards()
  const [tcp, http] = [forward('', 0), forward('', 0)]
  assert.equal(forwards.begin(tcp, tunnel('tn_1', 'tcp', 'a.example:20007')), 20_007)
  assert.equal(forwards.begin(http, tunnel('tn_2', 'http')), 80)
})

test('a port that was told before its tunnel was known stays, and is told for no other forward', () => {
  const forwards = new Forwards()
  const [early, late] = [forward('', 0), forward('', 0)]
  forwards.add(early)
  forwards.add(late)
  const told = forwards.announce(early)
  assert.equal(forwards.begin(early, tunnel('tn_1', 'tcp', 'a.example:20007')), told)
  assert.notEqual(forwards.begin(late, tunnel('tn_2', 'tcp', `a.example:${told}`)), told)
})

test('a forward is found by what the client was told, and its tunnel by its id', () => {
  const forwards = new Forwards()
  const each = forward('', 0)
  forwards.add(each)
  assert.equal(forwards.addressOf('tn_1'), undefined)
  forwards.begin(each, tunnel('tn_1', 'https'))
  assert.equal(forwards.at({ address: '', port: 443 }), each)
  assert.equal(forwards.at({ address: 'other', port: 443 }), undefined)
  assert.deepEqual(forwards.addressOf('tn_1'), { address: '', port: 443 })
  forwards.deleteOf(tunnel('tn_1', 'https'))
  assert.deepEqual([forwards.size, forwards.addressOf('tn_1')], [0, undefined])
})

test('the same address twice is recognised, except for port 0', () => {
  const forwards = new Forwards()
  forwards.add(forward('a.example', 443))
  forwards.add(forward('', 0))
  assert.equal(forwards.has({ address: 'a.example', port: 443 }), true)
  assert.equal(forwards.has({ address: 'b.example', port: 443 }), false)
  assert.equal(forwards.has({ address: '', port: 0 }), false)
})
