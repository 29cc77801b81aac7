import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Admission } from './admission.ts'
import { doorLimits } from './limits.ts'

function admission({ unproven = 4, unprovenPerIp = 2, failuresPerMinute = 3 } = {}) {
  const clock = { now: 0 }
  return { clock, it: new Admission({ ...doorLimits, unproven, unprovenPerIp, failuresPerMinute }, () => clock.now) }
}

test('one address may have only so many connections that have proved nothing', () => {
  const { it } = admission()
  assert.equal(it.enter('192.0.2.1'), undefined)
  assert.equal(it.enter('192.0.2.1'), undefined)
  assert.equal(it.enter('192.0.2.1'), 'too many connections from this address')
  assert.equal(it.enter('192.0.2.2'), undefined)
  it.leave('192.0.2.1')
  assert.equal(it.enter('192.0.2.1'), undefined)
  assert.equal(it.unproven, 3)
})

test('all addresses together may have only so many', () => {
  const { it } = admission()
  for (const ip of ['192.0.2.1', '192.0.2.2', '192.0.2.3', '192.0.2.4']) assert.equal(it.enter(ip), undefined)
  assert.equal(it.enter('192.0.2.5'), 'too many connections')
  it.leave('192.0.2.3')
  assert.equal(it.enter('192.0.2.5'), undefined)
})

test('who fails too often is not let in for the rest of the minute, and nobody else pays for it', () => {
  const { it, clock } = admission()
  for (let i = 0; i < 3; i++) it.fail('192.0.2.1')
  assert.equal(it.enter('192.0.2.1'), 'too many failed authentications')
  assert.equal(it.enter('192.0.2.2'), undefined)
  clock.now = 59_999
  assert.equal(it.enter('192.0.2.1'), 'too many failed authentications')
  clock.now = 60_000
  assert.equal(it.enter('192.0.2.1'), undefined)
})

test('a clock that is set back locks nobody out', () => {
  const { it, clock } = admission()
  clock.now = 1_000_000
  for (let i = 0; i < 3; i++) it.fail('192.0.2.1')
  clock.now = 0
  assert.equal(it.enter('192.0.2.1'), undefined)
})

test('addresses of one IPv6 network count as one, spelled in whatever way', () => {
  const { it } = admission({ unprovenPerIp: 3 })
  assert.equal(it.enter('2001:db8::1'), undefined)
  assert.equal(it.enter('2001:db8:0:0:ffff::2'), undefined)
  assert.equal(it.enter('2001:db8:0:0:1:2:3:4'), undefined)
  assert.equal(it.enter('2001:db8::3'), 'too many connections from this address')
  assert.equal(it.enter('2001:db8:0:1::3'), undefined)
  assert.equal(admission().it.enter('::1'), undefined)
})

test('IPv4 is the same address when it comes mapped into IPv6', () => {
  const { it } = admission({ unprovenPerIp: 1 })
  assert.equal(it.enter('::ffff:192.0.2.1'), undefined)
  assert.equal(it.enter('192.0.2.1'), 'too many connections from this address')
})

test('failures of many addresses are counted in bounded memory', () => {
  const { it } = admission({ failuresPerMinute: 1 })
  for (let i = 0; i < 10_001; i++) it.fail(`10.0.${i >> 8}.${i & 255}`)
  assert.equal(it.enter('10.0.0.0'), undefined)
  assert.equal(it.enter('10.0.0.1'), 'too many failed authentications')
})
