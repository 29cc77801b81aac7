import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { SlidingCounters } from './sliding-counters.ts'

const rate = { capacity: 10, windowMs: 1000 }

test('as many as allowed pass, and then none until some leave the window', () => {
  let now = 500
  const counters = new SlidingCounters({ now: () => now })
  for (let i = 0; i < 10; i++) assert.deepEqual(counters.take('a', rate), { isAllowed: true, waitMs: 0 })
  const { isAllowed, waitMs } = counters.take('a', rate)
  assert.equal(isAllowed, false)
  now += waitMs
  assert.equal(counters.take('a', rate).isAllowed, true)
})

test('each key and each window length is counted separately', () => {
  const counters = new SlidingCounters({ now: () => 0 })
  for (let i = 0; i < 10; i++) counters.take('a', rate)
  assert.equal(counters.take('a', rate).isAllowed, false)
  assert.equal(counters.take('b', rate).isAllowed, true)
  assert.equal(counters.take('a', { ...rate, windowMs: 2000 }).isAllowed, true)
})

test('at most twice the capacity passes within any window, and waiting for `waitMs` succeeds', () => {
  const steps = fc.array(fc.oneof(fc.nat(20), fc.nat(400), fc.nat(3000)), { maxLength: 300 })
  fc.assert(
    fc.property(steps, fc.integer({ min: 1, max: 12 }), (gaps, capacity) => {
      let now = 0
      const counters = new SlidingCounters({ now: () => now })
      const passed: number[] = []
      for (const gap of gaps) {
        now += gap
        const { isAllowed, waitMs } = counters.take('a', { capacity, windowMs: 1000 })
        if (isAllowed) passed.push(now)
        else {
          assert.ok(waitMs > 0 && waitMs <= 2000, `${waitMs}`)
          now += waitMs
          assert.ok(counters.take('a', { capacity, windowMs: 1000 }).isAllowed, 'who waited is refused')
          passed.push(now)
        }
      }
      // Any window overlaps at most two counted ones, each of which holds at most the capacity.
      for (const from of passed) {
        const within = passed.filter((at) => at >= from && at < from + 1000).length
        assert.ok(within <= 2 * capacity, `${within} within a window`)
      }
    }),
  )
})

test('expired keys are dropped, so that ever new keys use bounded memory', () => {
  let now = 0
  const counters = new SlidingCounters({ now: () => now })
  for (let i = 0; i < 5000; i++, now += 1) counters.take(String(i), { capacity: 1, windowMs: 100 })
  assert.ok(counters.size < 500, `${counters.size}`)
})

test('keys beyond the limit are counted together, and earlier ones keep their own counters', () => {
  const counters = new SlidingCounters({ now: () => 0, maxKeys: 5 })
  for (let i = 0; i < 5; i++) assert.equal(counters.take(`known ${i}`, rate).isAllowed, true)
  let passed = 0
  for (let i = 0; i < 1000; i++) if (counters.take(`new ${i}`, rate).isAllowed) passed++
  assert.equal(passed, 10)
  assert.equal(counters.take('known 3', rate).isAllowed, true)
  assert.equal(counters.size, 6)
})

test('a copy starts with the counts so far and then counts independently', () => {
  let now = 1000
  const counters = new SlidingCounters({ now: () => now })
  const rate = { capacity: 2, windowMs: 60_000 }
  for (const key of ['a 1', 'a 1', 'a 2', 'b 1']) counters.take(key, rate)
  now += 10_000
  const counted = counters.counted('a ')
  assert.deepEqual(counted, [
    { key: 'a 1', windowMs: 60_000, ageMs: 10_000, current: 2, previous: 0 },
    { key: 'a 2', windowMs: 60_000, ageMs: 10_000, current: 1, previous: 0 },
  ])
  const copy = SlidingCounters.from(counted)
  assert.equal(copy.take('a 1', rate).isAllowed, false)
  assert.equal(copy.take('a 2', rate).isAllowed, true)
  assert.equal(copy.take('a 2', rate).isAllowed, false)
  assert.deepEqual(counters.counted('a '), counted)
})

test('an event that is given back can be taken again, once, and only in its window', () => {
  let now = 0
  const counters = new SlidingCounters({ now: () => now })
  const rate = { capacity: 1, windowMs: 1000 }
  const isAllowed = (): boolean => counters.take('a', rate).isAllowed
  counters.giveBack('a', 1000)
  assert.deepEqual([isAllowed(), isAllowed()], [true, false])
  counters.giveBack('a', 1000)
  assert.deepEqual([isAllowed(), isAllowed()], [true, false])
  now = 1500
  counters.giveBack('a', 1000)
  assert.equal(isAllowed(), false)
})
