import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Admission, type Candidate } from './admission.ts'
import { listenerLimits } from './tunnel-limits.ts'

function admission({ unproven = 4, unprovenPerIp = 2, failuresPerMinute = 3 } = {}) {
  const clock = { now: 0 }
  const it = new Admission({ ...listenerLimits, unproven, unprovenPerIp, failuresPerMinute }, () => clock.now)
  return { clock, it }
}

/** Records whether it was dropped. */
function from(ip: string): Candidate & { isDropped: boolean } {
  return {
    peer: { ip },
    isDropped: false,
    drop() {
      this.isDropped = true
    },
  }
}

test('of too many unauthenticated connections from one address the oldest is dropped, and the newest gets in', () => {
  const { it } = admission()
  const [first, second, third, other] = ['192.0.2.1', '192.0.2.1', '192.0.2.1', '192.0.2.2'].map(from)
  assert.ok(first && second && third && other)
  assert.equal(it.enter(first), undefined)
  assert.equal(it.enter(second), undefined)
  assert.equal(it.enter(third), 'too many connections from this address')
  assert.equal(it.enter(other), undefined)
  assert.deepEqual(
    [first, second, third, other].map(({ isDropped }) => isDropped),
    [true, false, false, false],
  )
  assert.equal(it.unproven, 3)
  it.leave(first)
  it.leave(second)
  it.leave(second)
  assert.equal(it.unproven, 2)
  assert.equal(it.enter(from('192.0.2.1')), undefined)
})

test('of too many from all addresses together the oldest is dropped', () => {
  const { it } = admission()
  const all = ['192.0.2.1', '192.0.2.2', '192.0.2.3', '192.0.2.4'].map(from)
  for (const each of all) assert.equal(it.enter(each), undefined)
  assert.equal(it.enter(from('192.0.2.5')), 'too many connections')
  assert.deepEqual(
    all.map(({ isDropped }) => isDropped),
    [true, false, false, false],
  )
  assert.equal(it.unproven, 4)
})

test('an address that fails too often is marked for the rest of the minute, and no other', () => {
  const { it, clock } = admission()
  assert.deepEqual(
    [1, 2, 3, 4].map(() => it.fail('192.0.2.1')),
    [false, false, false, true],
  )
  assert.equal(it.fail('192.0.2.2'), false)
  // It may go on trying: a valid token is let in.
  assert.equal(it.enter(from('192.0.2.1')), undefined)
  clock.now = 59_999
  assert.equal(it.fail('192.0.2.1'), true)
  clock.now = 60_000
  assert.equal(it.fail('192.0.2.1'), false)
})

test('a clock that is set back delays nobody', () => {
  const { it, clock } = admission()
  clock.now = 1_000_000
  for (let i = 0; i < 4; i++) it.fail('192.0.2.1')
  clock.now = 0
  assert.equal(it.fail('192.0.2.1'), false)
})

test('addresses of one IPv6 network count as one', () => {
  const { it } = admission()
  assert.equal(it.enter(from('2001:db8::1')), undefined)
  assert.equal(it.enter(from('2001:db8:0:0:ffff::2')), undefined)
  assert.equal(it.enter(from('2001:db8:0:0:1:2:3:4')), 'too many connections from this address')
  assert.equal(it.enter(from('2001:db8:0:1::3')), undefined)
})

test('failures of many addresses are counted in bounded memory', () => {
  const { it } = admission({ failuresPerMinute: 1 })
  for (let i = 0; i < 10_001; i++) it.fail(`10.0.${i >> 8}.${i & 255}`)
  assert.equal(it.fail('10.0.0.0'), false, 'the first was forgotten')
  assert.equal(it.fail('10.0.0.3'), true)
})
