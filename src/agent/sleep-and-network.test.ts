import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type SleepOrNetworkChange, watchSleepAndNetwork } from './sleep-and-network.ts'
import { TestTimers } from './testing/test-timers.ts'

function watched() {
  const timers = new TestTimers()
  const changes: SleepOrNetworkChange[] = []
  const network = { addresses: '10.0.0.2' }
  const stop = watchSleepAndNetwork({
    timers,
    addresses: () => network.addresses,
    onChange: (change) => changes.push(change),
  })
  return { timers, changes, network, stop }
}

test('an hour without changes reports nothing', () => {
  const { timers, changes } = watched()
  timers.pass(3_600_000)
  assert.deepEqual(changes, [])
  assert.equal(timers.waiting, 1)
})

test('sleep is noticed once, at the first check after the machine woke', () => {
  const { timers, changes } = watched()
  timers.pass(20_000)
  timers.sleep(600_000)
  timers.pass(5000)
  assert.deepEqual(changes, ['slept'])
  timers.pass(60_000)
  assert.deepEqual(changes, ['slept'])
})

test('a process that was busy for some seconds does not count as asleep', () => {
  const { timers, changes } = watched()
  timers.sleep(4000)
  timers.pass(60_000)
  assert.deepEqual(changes, [])
})

test('a changed address is noticed', () => {
  const { timers, changes, network } = watched()
  network.addresses = '192.168.1.7'
  timers.pass(5000)
  assert.deepEqual(changes, ['network'])
})

test('nothing is checked after it was stopped', () => {
  const { timers, stop } = watched()
  stop()
  assert.equal(timers.waiting, 0)
})
