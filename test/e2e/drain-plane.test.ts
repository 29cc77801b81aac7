/** Where agents and visitors are sent when a data plane stops, or its whole node. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { drainPlane } from '../../src/server/compose/drain-plane.ts'

type Given = Parameters<typeof drainPlane>

/** Drains a plane without connections; returns its steps in order. */
async function drained({ isNode, isSurvived }: { isNode: boolean; isSurvived: boolean }): Promise<string[]> {
  const steps: string[] = []
  const plane = { live: { now: { drainTimeoutMs: 0 } }, control: { ask: async () => ({ isNode }) } }
  const online = {
    moving: 0,
    tellToMove: async (others?: readonly string[]) =>
      void steps.push(`agents go to ${others?.join() ?? 'other planes'}`),
    endAll: () => void steps.push('agents end'),
  }
  const parts = {
    limits: { peers: { others: () => ['w2'] }, counters: { leave: async () => {} } },
    table: { ports: { closeAll() {} }, tls: { pending: 0 } },
    tunnels: { online },
    remote: {
      agentAddresses: () => ['n2.example.com:7443'],
      leave() {},
      relayed: { streams: 0, open: [], stop: () => void steps.push('other nodes use other planes') },
    },
    visitors: {
      front: { open: 0, connections: [], drain() {}, cut() {} },
      router: { carried: 0, sockets: [], cut() {} },
    },
  }
  const listeners = {
    plain: { close() {} },
    secure: { close() {}, sendAway() {}, pending: 0 },
    agentListeners: [{ stop: () => void steps.push('agents are not accepted'), closed: async () => {} }],
    together: { begun() {}, done() {}, isSurvived, othersDone: async () => {} },
  }
  // Only the parts that a plane without visitors needs.
  await drainPlane(plane as unknown as Given[0], parts as unknown as Given[1], listeners as unknown as Given[2])
  return steps
}

test('a plane that stops sends agents and other nodes to the remaining planes', async () => {
  assert.deepEqual(await drained({ isNode: false, isSurvived: true }), [
    'agents are not accepted',
    'other nodes use other planes',
    'agents go to other planes',
    'agents are not accepted',
    'agents end',
  ])
})

test('a node that stops sends agents to other nodes, and other nodes reach it until the agents are gone', async () => {
  assert.deepEqual(await drained({ isNode: true, isSurvived: false }), [
    'agents are not accepted',
    'agents go to n2.example.com:7443',
    'agents are not accepted',
    'agents end',
  ])
})
