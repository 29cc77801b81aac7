/** Look-ups of names at other nodes: made-up names of one source, and a visitor of another. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { placeOf, RemotePlane, settled } from '../../../src/data-plane/remote/testing/test-node-tunnels.ts'
import { shared } from '../../../src/model/shared.ts'
import { HeldWork } from './held-work.ts'

const { most } = shared.nameLookUps
const VISITS = 50

test('a flood of made-up names lets the names of another visitor be looked up next', async (t) => {
  const plane = new RemotePlane()
  t.after(() => plane.nodes.close())
  const work = new HeldWork()
  // Read once for each look-up, when it has begun.
  Object.defineProperty(plane, 'held', { get: () => work.begin(plane.asked.at(-1) ?? '') })
  const names = Array.from({ length: VISITS }, (_, i) => `a${i}.example.com`)
  plane.store(...names.map((name, i) => placeOf(`secure:${name}`, { tunnelId: `tn_${i}` })))

  // An IPv6 host has as many addresses as it likes; more wait than may.
  for (let i = 0; i < 10 * most; i++) {
    void plane.nodes.lookUp('secure', `x${i}.test`, {}, `2001:db8::${i.toString(16)}`)
  }
  assert.equal(work.underWay, most)
  const visits = names.map((name) => plane.nodes.lookUp('secure', name, {}, '192.0.2.9'))
  await work.letGo()
  assert.deepEqual(
    work.begun.slice(most, most + VISITS),
    names.map((name) => `secure:${name}`),
  )
  await work.letGo()
  for (const visit of visits) await visit
  const again = names.map((name) => plane.nodes.lookUp('secure', name, { hasWaited: true }, '192.0.2.9'))
  assert.deepEqual(new Set(again), new Set([undefined]), 'nobody waits longer, and nobody is refused')
  assert.equal(plane.ids.length, VISITS)
  while (work.underWay > 0) await work.letGo()
  await settled()
})
