/** Who is sent where when a data plane stops, or its whole node. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type DrainPlane, drainPlane } from '../../src/drain-plane.ts'

/** A plane with nobody connected; gives what it did, in order. */
async function drained({ isNode, isSurvived }: { isNode: boolean; isSurvived: boolean }): Promise<string[]> {
  const did: string[] = []
  const plane = {
    drainMs: 0,
    visitors: {
      plain: { close() {} },
      ports: { closeAll() {} },
      secure: { close() {}, sendAway() {}, pending: 0 },
      tls: { pending: 0 },
      front: { open: 0, connections: [], drain() {}, cut() {} },
      visitors: { carried: 0, sockets: [], cut() {} },
    },
    doors: [{ stop: () => void did.push('agents are not accepted'), closed: async () => {} }],
    online: {
      moving: 0,
      tellToMove: async (others?: readonly string[]) =>
        void did.push(`agents go to ${others?.join() ?? 'other planes'}`),
      endAll: () => void did.push('agents end'),
    },
    control: { ask: async () => ({ isNode }) },
    together: { begun() {}, done() {}, isSurvived, othersDone: async () => {} },
    counters: { leave: async () => {} },
    relayed: { streams: 0, open: [], stop: () => void did.push('other nodes use other planes') },
    hasOthers: true,
    nodes: () => ['n2.example.com:7443'],
    onLeaving() {},
  }
  await drainPlane(plane as unknown as DrainPlane) // of each part what a plane without visitors needs
  return did
}

test('a plane that stops sends agents and other nodes to the planes that stay', async () => {
  assert.deepEqual(await drained({ isNode: false, isSurvived: true }), [
    'agents are not accepted',
    'other nodes use other planes',
    'agents go to other planes',
    'agents are not accepted',
    'agents end',
  ])
})

test('a node that stops sends agents to other nodes, which reach it until they are gone', async () => {
  assert.deepEqual(await drained({ isNode: true, isSurvived: false }), [
    'agents are not accepted',
    'agents go to n2.example.com:7443',
    'agents are not accepted',
    'agents end',
  ])
})
