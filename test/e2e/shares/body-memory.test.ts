/** Memory for bodies that modules read: many sources hold all that they can at one edge, and a visitor of another sends one. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type BodyLease, BodyMemory } from '../../../src/data-plane/edge/body-memory.ts'
import { shared } from '../../../src/model/shared.ts'

const MIB = 1024 * 1024
/** What arrives at once, and how often. */
const PIECE = 64 * 1024

test('an edge whose visitors hold all they can leaves memory for the bodies of another edge', () => {
  const memory = new BodyMemory({ bytes: shared.bodyMemory.most * MIB })
  const fill = (lease: BodyLease): void => {
    while (lease.take(PIECE));
  }
  // An IPv6 host has as many addresses as it likes, and a botnet has many networks.
  for (let i = 0; i < 200; i++) {
    fill(memory.lease({ edgeId: 'hostile', ip: `2001:db8::${i}` }))
    fill(memory.lease({ edgeId: 'hostile', ip: `192.0.2.${i}` }))
  }
  assert.ok(memory.used > (shared.bodyMemory.most * MIB) / 3, 'they hold what they can')

  for (let i = 0; i < 100; i++) {
    const lease = memory.lease({ edgeId: 'calm', ip: `198.51.100.${i}` })
    for (let bytes = 0; bytes < 4 * MIB; bytes += PIECE) assert.ok(lease.take(PIECE), `body ${i}, after ${bytes} bytes`)
    lease.release()
  }
  // Several at once, too.
  const some = [1, 2, 3].map((i) => memory.lease({ edgeId: 'calm', ip: `203.0.113.${i}` }))
  for (const lease of some) assert.ok(lease.take(2 * MIB))
})
