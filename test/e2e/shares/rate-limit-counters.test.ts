/** Counters of `rate-limit`: ever new keys of one edge, in many windows, refuse no visitor of another. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SharedCounters } from '../../../src/data-plane/node-limits/shared-counters.ts'
import { TestNode } from '../../../src/data-plane/node-limits/testing/test-worker-peers.ts'
import { shared } from '../../../src/model/shared.ts'

const VISITORS = 200
const CAPACITY = 3
const WINDOW_MS = 60_000
const WINDOWS = 10

test('an edge with more keys than there is room for takes no counter from another edge', async () => {
  const node = new TestNode()
  const plane = node.plane('w1')
  const counters = new SharedCounters(plane, { now: () => 1000 })
  node.join(plane)
  const visit = async (visitor: number): Promise<boolean> =>
    (await counters.take(`calm ${visitor}`, { capacity: CAPACITY, windowMs: WINDOW_MS })).isAllowed
  const visitAll = (from: number): Promise<boolean[]> =>
    Promise.all(Array.from({ length: VISITORS }, (_, i) => visit(from + i)))

  const allowed = [...(await visitAll(0))]
  for (let i = 0; i < 2 * shared.rateLimitCounters.most; i++) {
    const windowMs = WINDOW_MS * (1 + (i % WINDOWS))
    await counters.take(`hostile ${i}`, { capacity: 1_000_000, windowMs })
    if (i % (shared.rateLimitCounters.most / 5) === 0) allowed.push(await visit(VISITORS + i))
  }
  // Those who came before the attack, and others who come now.
  allowed.push(...(await visitAll(0)), ...(await visitAll(10 * shared.rateLimitCounters.most)))
  assert.ok(!allowed.includes(false), `${allowed.filter((each) => !each).length} of ${allowed.length} are refused`)

  // Each of them is still counted by itself.
  await visitAll(0)
  assert.deepEqual(new Set(await visitAll(0)), new Set([false]))
})
