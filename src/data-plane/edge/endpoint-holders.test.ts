import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { BackendPlan, EdgeConfig } from '../../model/edge-config.ts'
import type { CompiledEdge } from './compile-edge.ts'
import { EndpointHolders } from './endpoint-holders.ts'

function edgeOf(id: string, backend: BackendPlan): EdgeConfig {
  return { id, kind: 'tls', names: ['a.test'], ports: [], modules: { backend }, routes: [] }
}
const pool = edgeOf('ep_pool', { kind: 'tunnel_group', id: 'ep_pool', labels: {}, pool: { proxyHeader: 0 } })
const own = edgeOf('ep_1', { kind: 'tunnel', tunnelId: 'tn_1', httpVersion: 1, proxyHeader: 0 })

function edges() {
  const done: string[] = []
  const served = new Set<string>()
  const serve = async ({ id }: EdgeConfig) => {
    done.push(`serve ${id}`)
    served.add(id)
    return undefined
  }
  const shared = new EndpointHolders({
    has: (id) => served.has(id),
    apply: serve,
    applyCompiled: serve,
    // Nothing else of it is used.
    compileAhead: async ({ id }) => ({ release: () => void done.push(`release ${id}`) }) as unknown as CompiledEdge,
    remove: (id) => {
      done.push(`remove ${id}`)
      served.delete(id)
    },
  })
  return { shared, done }
}

describe('an endpoint of agents', () => {
  test('of a pool is compiled once, and served until its last holder lets go', async () => {
    const { shared, done } = edges()
    await shared.serve(pool, await shared.compile(pool), 'tn_1')
    assert.equal(await shared.compile(pool), undefined)
    await shared.serve(pool, undefined, 'tn_2')
    await shared.serveIdle(pool, 'other nodes')
    for (const holder of ['tn_1', 'tn_1', 'other nodes', 'tn_3']) shared.letGo('ep_pool', holder)
    assert.deepEqual(done, ['serve ep_pool'])
    shared.letGo('ep_pool', 'tn_2')
    assert.deepEqual(done, ['serve ep_pool', 'remove ep_pool'])
  })

  test('of a pool that was compiled twice at once leaves nothing behind', async () => {
    const { shared, done } = edges()
    const [first, second] = [await shared.compile(pool), await shared.compile(pool)]
    await shared.serve(pool, first, 'tn_1')
    await shared.serve(pool, second, 'tn_2')
    assert.deepEqual(done, ['serve ep_pool', 'release ep_pool'])
  })

  test('of a pool that has gone while a member joined is served again', async () => {
    const { shared, done } = edges()
    await shared.serve(pool, await shared.compile(pool), 'tn_1')
    const compiled = await shared.compile(pool)
    shared.letGo('ep_pool', 'tn_1')
    await shared.serve(pool, compiled, 'tn_2')
    assert.deepEqual(done, ['serve ep_pool', 'remove ep_pool', 'serve ep_pool'])
  })

  test('of one tunnel is served again with each bind', async () => {
    const { shared, done } = edges()
    for (let i = 0; i < 2; i++) await shared.serve(own, await shared.compile(own), 'tn_1')
    shared.letGo('ep_1', 'tn_1')
    assert.deepEqual(done, ['serve ep_1', 'serve ep_1', 'remove ep_1'])
  })
})
