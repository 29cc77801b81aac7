/** Where agents and visitors are sent when a data plane stops, or its whole node. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { drainPlane } from '../../src/server/compose/drain-plane.ts'

type Given = Parameters<typeof drainPlane>

const NODES = ['n2.example.com:7443']

interface Drain {
  /** Whether the control plane says that the whole node stops. */
  readonly isNode: boolean
  readonly isSurvived: boolean
  /** How often the control plane is asked before it answers. */
  readonly late?: number
  readonly others?: readonly string[]
  /** The other planes of the node that it has heard of when it begins. */
  readonly peers?: readonly string[]
  readonly drainTimeoutMs?: number
}

/** Drains a plane without visitors, but with an agent; returns its steps in order. */
async function drained({
  isNode,
  isSurvived,
  late = 0,
  others = NODES,
  peers = ['w2'],
  ...given
}: Drain): Promise<string[]> {
  const { drainTimeoutMs = 600_000 } = given
  const steps: string[] = []
  let asked = 0
  const ask = async () => {
    if (++asked <= late) throw new Error('it does not answer')
    return { isNode }
  }
  const plane = { live: { now: { drainTimeoutMs } }, control: { ask }, folder: '/run/postern' }
  const online = {
    moving: 0,
    isEmpty: false,
    tellToMove: async (others?: readonly string[]) =>
      void steps.push(`agents go to ${others?.join() ?? 'other planes'}`),
    endAll: () => void steps.push('agents end'),
  }
  const parts = {
    limits: { peers: { others: () => peers }, counters: { leave: async () => {} } },
    table: { ports: { closeAll() {} }, tls: { pending: 0 } },
    tunnels: { online },
    remote: {
      agentAddresses: () => others,
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

test('a control plane that answers late is asked again, and until then no agent is cut', async () => {
  assert.deepEqual(await drained({ isNode: false, isSurvived: true, late: 3 }), [
    'agents are not accepted',
    'other nodes use other planes',
    'agents go to other planes',
    'agents are not accepted',
    'agents end',
  ])
})

test('the only worker before an upgrade asks too, though it has not heard of its successor when it begins', async () => {
  assert.deepEqual(await drained({ isNode: false, isSurvived: true, late: 1, others: [], peers: [] }), [
    'agents are not accepted',
    'other nodes use other planes',
    'agents go to other planes',
    'agents are not accepted',
    'agents end',
  ])
})

test('agents of a stopping node go to other nodes, though its control plane does not answer or cannot tell them', async () => {
  const moved = ['agents are not accepted', 'agents go to n2.example.com:7443', 'agents are not accepted', 'agents end']
  assert.deepEqual(await drained({ isNode: true, isSurvived: false, late: Number.POSITIVE_INFINITY }), moved)
  assert.deepEqual(await drained({ isNode: false, isSurvived: false }), moved)
})

test('the only node stops as soon as its control plane has said that there is no other', async () => {
  assert.deepEqual(await drained({ isNode: true, isSurvived: false, others: [] }), [
    'agents are not accepted',
    'agents are not accepted',
    'agents end',
  ])
})
