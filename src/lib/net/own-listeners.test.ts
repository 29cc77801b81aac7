import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ownListeners } from './own-listeners.ts'

const ports = { control: [7400], visitors: [8443], range: { from: 20_000, to: 20_999 } }
const uses = [
  [7400, 'control'],
  [8443, 'visitors'],
  [20_000, 'visitors'],
  [20_999, 'visitors'],
] as const

test('a port of ours at an address of this machine is our own', () => {
  const listenerAt = ownListeners(ports, () => ['203.0.113.7', '2001:db8::7'])
  for (const [port, use] of uses) {
    assert.equal(listenerAt('203.0.113.7', port), use, String(port))
    assert.equal(listenerAt('203.0.113.8', port), undefined, String(port))
  }
  assert.equal(listenerAt('2001:db8::7', 7400), 'control')
  for (const port of [443, 19_999, 21_000]) assert.equal(listenerAt('203.0.113.7', port), undefined, String(port))
})

test('an address that this machine gets later counts too', () => {
  const addresses: string[] = []
  const listenerAt = ownListeners(ports, () => addresses)
  assert.equal(listenerAt('203.0.113.7', 7400), undefined)
  addresses.push('203.0.113.7')
  assert.equal(listenerAt('203.0.113.7', 7400), 'control')
})

test('all of loopback and the unspecified address lead to this machine', () => {
  const listenerAt = ownListeners(ports, () => [])
  for (const address of ['127.0.0.1', '127.255.0.9', '::1', '0.0.0.0', '::', '::ffff:127.0.0.1', '::ffff:7f00:1']) {
    assert.equal(listenerAt(address, 7400), 'control', address)
  }
  for (const address of ['128.0.0.1', '::2', 'localhost']) assert.equal(listenerAt(address, 7400), undefined, address)
})

test('a port in the range for visitors that another listener has is not for visitors', () => {
  const listenerAt = ownListeners({ ...ports, control: [20_500, 8443] })
  assert.equal(listenerAt('127.0.0.1', 20_500), 'control')
  assert.equal(listenerAt('127.0.0.1', 8443), 'control')
})

test('the addresses of this machine are those that its interfaces have', () => {
  assert.equal(ownListeners(ports)('127.0.0.1', 7400), 'control')
})
