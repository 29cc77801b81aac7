import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { dividedCounters, type LimitPart, limitPartOf, undivided } from './divided-counters.ts'
import { type Counters, SlidingCounters } from './sliding-counters.ts'

const windowMs = 60_000

/** The number of `tries` that pass. */
async function passing(counters: Counters, tries: number, capacity: number): Promise<number> {
  let passed = 0
  for (let i = 0; i < tries; i++) if ((await counters.take('a', { capacity, windowMs })).isAllowed) passed++
  return passed
}

test('all nodes together admit as many as the limit, in equal parts', async () => {
  const ids = fc.uniqueArray(fc.string({ minLength: 1 }), { minLength: 1, maxLength: 8 })
  await fc.assert(
    fc.asyncProperty(ids, fc.integer({ min: 0, max: 40 }), async (nodes, more) => {
      const capacity = nodes.length + more
      const passed: number[] = []
      for (const self of nodes) {
        const part = limitPartOf(
          self,
          nodes.filter((id) => id !== self),
        )
        passed.push(
          await passing(
            dividedCounters(new SlidingCounters(), () => part),
            capacity + 1,
            capacity,
          ),
        )
      }
      assert.equal(
        passed.reduce((a, b) => a + b),
        capacity,
      )
      assert.ok(Math.max(...passed) - Math.min(...passed) <= 1, String(passed))
    }),
  )
})

test('with more nodes than the capacity, each node admits one', async () => {
  for (const rank of [0, 4]) {
    assert.equal(
      await passing(
        dividedCounters(new SlidingCounters(), () => ({ nodes: 5, rank })),
        10,
        2,
      ),
      1,
    )
  }
})

test('counts remain when nodes come and go', async () => {
  let part: LimitPart = { nodes: 3, rank: 0 }
  const counters = dividedCounters(new SlidingCounters({ now: () => 0 }), () => part)
  assert.equal(await passing(counters, 100, 30), 10)
  part = undivided
  assert.equal(await passing(counters, 100, 30), 20)
  part = { nodes: 2, rank: 1 }
  assert.equal(await passing(counters, 100, 30), 0)
})
