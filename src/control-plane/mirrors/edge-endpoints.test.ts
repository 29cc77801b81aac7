import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { eachStore } from '../../../test/support/databases.ts'
import { isId } from '../../lib/ids.ts'
import { createLog } from '../../lib/log/create-log.ts'
import type { PresentEndpoint } from '../../model/presence.ts'
import { nobodyPresent } from '../records/online-lists.ts'
import type { StoredResource } from '../store/reader.ts'
import { openStore, type Store } from '../store/store.ts'
import { EdgeEndpoints } from './edge-endpoints.ts'

function edge(id: string, kind: string, hostports: readonly string[]): StoredResource {
  const fields = { hostports, metadata: 'm', description: '' }
  return { id, kind, fields, createdAt: '2026-01-01T00:00:00Z', parentId: null, ownerId: null, modules: new Map() }
}

const a = `edghts_${'a'.repeat(27)}`
const b = `edgtcp_${'b'.repeat(27)}`

eachStore((databases) => {
  describe('the endpoints of edges', () => {
    let store: Store
    before(async () => {
      store = await openStore(await databases.url())
    })
    after(() => store.close())
    const fresh = () => new EdgeEndpoints({ store, region: 'local', log: createLog({ level: 'silent' }) })

    test('there is one for each hostport, with an id that does not change', async () => {
      const endpoints = fresh()
      endpoints.set(edge(a, 'https_edge', ['x.example.com:443', 'y.example.com:8443']))
      const found = await endpoints.beside(nobodyPresent).endpoints({ limit: 10 })
      assert.deepEqual(
        found
          .map(({ publicUrl, edgeId, type, metadata }) => ({ publicUrl, edgeId, type, metadata }))
          .sort((p, q) => p.publicUrl.localeCompare(q.publicUrl)),
        ['https://x.example.com', 'https://y.example.com:8443'].map((publicUrl) => ({
          publicUrl,
          edgeId: a,
          type: 'edge',
          metadata: 'm',
        })),
      )
      for (const { id } of found) {
        assert.ok(isId(id, 'ep_'), id)
        assert.equal((await endpoints.beside(nobodyPresent).endpoint(id))?.id, id)
      }
      const again = fresh()
      again.set(edge(a, 'https_edge', ['x.example.com:443']))
      const ids = (await again.beside(nobodyPresent).endpoints({ limit: 10 })).map(({ id }) => id)
      assert.ok(found.some(({ id }) => id === ids[0]))
    })

    test('endpoints of hostports that an edge gave up are gone', async () => {
      const endpoints = fresh()
      endpoints.set(edge(a, 'https_edge', ['x.example.com:443']))
      endpoints.set(edge(a, 'https_edge', []))
      assert.deepEqual(await endpoints.beside(nobodyPresent).endpoints({ limit: 10 }), [])
    })

    test('pages list endpoints of agents and of edges in one order', async () => {
      const endpoints = fresh()
      endpoints.set(edge(a, 'https_edge', ['x.example.com:443']))
      endpoints.set(edge(b, 'tcp_edge', ['h:20001']))
      const agent = { id: `ep_aZ${'0'.repeat(25)}`, type: 'ephemeral' } as unknown as PresentEndpoint // all that is looked at
      const presence = endpoints.beside({
        ...nobodyPresent,
        endpoints: async ({ beforeId }) => (beforeId === undefined || agent.id < beforeId ? [agent] : []),
      })
      const seen: string[] = []
      let beforeId: string | undefined
      for (;;) {
        const [one] = await presence.endpoints({ limit: 1, ...(beforeId !== undefined && { beforeId }) })
        if (!one) break
        seen.push(one.edgeId ?? 'agent')
        beforeId = one.id
      }
      assert.deepEqual(seen, [b, a, 'agent'])
    })
  })
})
