import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ownListeners } from './own-listeners.ts'

const ports = { ports: [7400, 8443], range: { from: 20_000, to: 20_999 } }

test('a port of ours at an address of this machine is our own', () => {
  const isOwn = ownListeners(ports, () => ['203.0.113.7', '2001:db8::7'])
  for (const port of [7400, 8443, 20_000, 20_999]) {
    assert.equal(isOwn('203.0.113.7', port), true, String(port))
    assert.equal(isOwn('203.0.113.8', port), false, String(port))
  }
  assert.equal(isOwn('2001:db8::7', 7400), true)
  for (const port of [443, 19_999, 21_000]) assert.equal(isOwn('203.0.113.7', port), false, String(port))
})

test('an address that this machine gets later counts too', () => {
  const addresses: string[] = []
  const isOwn = ownListeners(ports, () => addresses)
  assert.equal(isOwn('203.0.113.7', 7400), false)
  addresses.push('203.0.113.7')
  assert.equal(isOwn('203.0.113.7', 7400), true)
})

test('the addresses of this machine are those that its interfaces have', () => {
  assert.equal(ownListeners(ports)('127.0.0.1', 7400), true)
})
