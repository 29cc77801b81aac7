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

test('keys beyond the room are counted together, and earlier ones of their owner keep their counters', () => {
  const counters = new SlidingCounters({ now: () => 0, maxKeys: 6 })
  for (let i = 0; i < 6; i++) assert.equal(counters.take(`edge known-${i}`, rate).isAllowed, true)
  let passed = 0
  for (let i = 0; i < 1000; i++) if (counters.take(`edge new-${i}`, rate).isAllowed) passed++
  assert.equal(passed, 10)
  assert.equal(counters.take('edge known-3', rate).isAllowed, true)
  assert.equal(counters.size, 6)
})

test('ever new keys of one edge refuse nobody of another, whatever windows they use (A1, A2)', () => {
  const counters = new SlidingCounters({ now: () => 0, maxKeys: 1000 })
  const flood = (times: number): void => {
    for (let i = 0; i < times; i++) {
      counters.take(`hostile ${i}`, { capacity: 1_000_000, windowMs: 60_000 + (i % 500) * 10_000 })
    }
  }
  flood(5000)
  assert.ok(counters.size <= 1000)
  for (let i = 0; i < 200; i++) {
    assert.equal(counters.take(`other ${i}`, { capacity: 1, windowMs: 60_000 }).isAllowed, true, `visitor ${i}`)
    flood(20)
    assert.equal(counters.take(`other ${i}`, { capacity: 1, windowMs: 60_000 }).isAllowed, false, `visitor ${i} again`)
  }
  assert.ok(counters.size <= 1000)
})

test('counters of edges without visitors make room for those of one with very many', () => {
  let now = 0
  const counters = new SlidingCounters({ now: () => now, maxKeys: 1000 })
  for (let i = 0; i < 900; i++) counters.take(`idle-${i % 9} ${i}`, rate)
  now += 10 * rate.windowMs
  for (let i = 0; i < 700; i++, now++) {
    assert.equal(counters.take(`busy ${i}`, { capacity: 1, windowMs: 60_000 }).isAllowed, true, `visitor ${i}`)
  }
})

test('what belongs to an edge that is gone goes with it', () => {
  const counters = new SlidingCounters({ now: () => 0 })
  for (const key of ['gone a', 'gone b', 'kept a']) counters.take(key, { capacity: 1, windowMs: 1000 })
  counters.forget('gone')
  assert.equal(counters.size, 1)
  assert.equal(counters.take('gone a', { capacity: 1, windowMs: 1000 }).isAllowed, true)
  assert.equal(counters.take('kept a', { capacity: 1, windowMs: 1000 }).isAllowed, false)
})

test('a copy starts with the counts so far and then counts independently', () => {
  let now = 1000
  const counters = new SlidingCounters({ now: () => now })
  const rate = { capacity: 2, windowMs: 60_000 }
  for (const key of ['a 1', 'a 1', 'a 2', 'b 1']) counters.take(key, rate)
  now += 10_000
  const counted = counters.counted('a')
  assert.deepEqual(counted, [
    { key: 'a 1', windowMs: 60_000, ageMs: 10_000, current: 2, previous: 0 },
    { key: 'a 2', windowMs: 60_000, ageMs: 10_000, current: 1, previous: 0 },
  ])
  const copy = SlidingCounters.from(counted)
  assert.equal(copy.take('a 1', rate).isAllowed, false)
  assert.equal(copy.take('a 2', rate).isAllowed, true)
  assert.equal(copy.take('a 2', rate).isAllowed, false)
  assert.deepEqual(counters.counted('a'), counted)
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
