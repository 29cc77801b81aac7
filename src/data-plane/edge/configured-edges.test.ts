import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EdgeConfig } from '../../model/edge-config.ts'
import { ConfiguredEdges } from './configured-edges.ts'

function edge(id: string, ...names: string[]): EdgeConfig {
  return { id, kind: 'tls', names, ports: [], modules: {}, routes: [] }
}

/** Agents with names below a wildcard of another owner, and one on a port. */
function stage() {
  const below: Record<string, string[]> = { '*.app.test': ['ep_1', 'ep_2'] }
  const at: Record<string, string> = { 'there.test': 'ep_3', 20001: 'ep_4' }
  const applied: string[] = []
  const removed: string[] = []
  const stopped: string[] = []
  const stored = new ConfiguredEdges({
    edges: {
      apply: async ({ id }: EdgeConfig, how?: { isIdle: boolean }) => {
        applied.push(how?.isIdle ? `${id} idle` : id)
        return undefined
      },
      remove: (id: string) => void removed.push(id),
      get storedIds() {
        return ['edgtls_1']
      },
      endpointAt: (address) => at['name' in address ? address.name : address.port],
    },
    agents: { below: (wildcard) => below[wildcard] ?? [] },
    stopTunnel: (id, { message, ngrok }) => stopped.push(`${id}: ${ngrok} ${message}`),
  })
  return { stored, applied, removed, stopped }
}

const nextTurn = () => new Promise((resolve) => setImmediate(resolve))

test('an edge with a wildcard ends other tunnels below it, once binds under way are over (D66)', async () => {
  const { stored, applied, stopped } = stage()
  await stored.apply(edge('edgtls_1', 'plain.test', '*.app.test'))
  assert.deepEqual([applied, stopped], [['edgtls_1'], []])
  await nextTurn()
  const why = '381 its name stands below a wildcard that the edge edgtls_1 holds'
  assert.deepEqual(stopped, [`tn_1: ${why}`, `tn_2: ${why}`])
})

test('an edge ends tunnels at its own addresses', async () => {
  const { stored, stopped } = stage()
  await stored.apply(edge('edgtls_1', 'free.test', 'there.test'))
  await stored.apply({ ...edge('edgtcp_1'), kind: 'tcp', ports: [20001, 20002] })
  assert.deepEqual(stopped, [
    'tn_3: 381 its address belongs to the edge edgtls_1',
    'tn_4: 381 its address belongs to the edge edgtcp_1',
  ])
})

test('an edge without a wildcard leaves agents alone', async () => {
  const { stored, applied, stopped } = stage()
  await stored.apply(edge('edgtls_1', 'app.test'), { isIdle: true })
  await nextTurn()
  assert.deepEqual([applied, stopped], [['edgtls_1 idle'], []])
})

test('an edge is blocked by an endpoint on its address, or below its wildcard', () => {
  const { stored } = stage()
  assert.equal(stored.endpointAt({ name: 'there.test' }), 'ep_3')
  assert.equal(stored.endpointAt({ port: 20001 }), 'ep_4')
  assert.equal(stored.endpointAt({ name: '*.app.test' }), 'ep_1')
  assert.equal(stored.endpointAt({ name: 'app.test' }), undefined)
  assert.equal(stored.endpointAt({ port: 20002 }), undefined)
})

test('removal and the list of stored edges are passed through', () => {
  const { stored, removed } = stage()
  stored.remove('edgtls_9')
  assert.deepEqual([removed, [...stored.storedIds]], [['edgtls_9'], ['edgtls_1']])
})
