import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { eachStore } from '../../../test/support/databases.ts'
import { isId } from '../../lib/ids.ts'
import { createLog } from '../../lib/log/create-log.ts'
import type { PresentEndpoint } from '../../model/presence.ts'
import { nobodyPresent } from '../records/online-lists.ts'
import { sealedBy, storeRows } from '../records/testing/test-rows.ts'
import { openStore, type Store } from '../store/store.ts'
import { edgeEndpoints } from './edge-endpoints.ts'

const fieldsWith = (hostports: readonly string[]) => ({ hostports, metadata: 'm', description: '' })

const a = `edghts_${'a'.repeat(27)}`
const b = `edgtcp_${'b'.repeat(27)}`

eachStore((databases) => {
  describe('the endpoints of edges', () => {
    let store: Store
    beforeEach(async () => {
      store = await sealedBy(await openStore(await databases.url()))
    })
    afterEach(() => store.close())
    const put = (id: string, kind: string, hostports: readonly string[]) =>
      storeRows(store, [{ id, kind, fields: fieldsWith(hostports) }])
    const change = (id: string, hostports: readonly string[]) =>
      store.write((writer) => writer.replaceFields(id, fieldsWith(hostports)))
    const loaded = async () => {
      const endpoints = edgeEndpoints({ store, region: 'local', log: createLog({ level: 'silent' }) })
      await endpoints.load()
      return endpoints
    }

    test('there is one for each hostport, with an id that does not change', async () => {
      await put(a, 'https_edge', ['x.example.com:443', 'y.example.com:8443'])
      const endpoints = await loaded()
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
      await change(a, ['x.example.com:443'])
      const again = await loaded()
      const ids = (await again.beside(nobodyPresent).endpoints({ limit: 10 })).map(({ id }) => id)
      assert.ok(found.some(({ id }) => id === ids[0]))
    })

    test('endpoints of hostports that an edge gave up are gone', async () => {
      await put(a, 'https_edge', ['x.example.com:443'])
      const endpoints = await loaded()
      await change(a, [])
      await endpoints.apply([{ kind: 'https_edge', id: a, revision: 1 }])
      assert.deepEqual(await endpoints.beside(nobodyPresent).endpoints({ limit: 10 }), [])
    })

    test('pages list endpoints of agents and of edges in one order', async () => {
      await put(a, 'https_edge', ['x.example.com:443'])
      await put(b, 'tcp_edge', ['h:20001'])
      const endpoints = await loaded()
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
