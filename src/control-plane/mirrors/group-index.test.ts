import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { eachStore } from '../../../test/support/databases.ts'
import { openStore, type Store } from '../store/store.ts'
import { tunnelGroupIndex } from './group-index.ts'

const KIND = 'tunnel_group_backend'

describe('the groups that a tunnel serves', () => {
  eachStore((databases) => {
    let store: Store
    before(async () => {
      store = await openStore(await databases.url())
      for (const [id, labels] of Object.entries(stored)) await put(id, labels)
    })
    after(() => store.close())

    const stored = {
      bkdtg_1: { app: 'a' },
      bkdtg_2: { app: 'a', dc: '1' },
      bkdtg_3: { app: 'b' },
      bkdtg_4: { dc: '1' },
    }

    const put = (id: string, labels: Record<string, string>) =>
      store.write(async (writer) => {
        const fields = { labels, description: '', metadata: '' }
        await writer.insert({
          id,
          kind: KIND,
          parentId: null,
          ownerId: null,
          createdAt: '2026-01-01T00:00:00Z',
          fields,
        })
      })

    test('are those whose labels it carries, all of them', async () => {
      const groups = tunnelGroupIndex(store)
      await groups.load()
      assert.deepEqual(groups.serving({ app: 'a', dc: '1', more: 'x' }), ['bkdtg_4', 'bkdtg_2', 'bkdtg_1'])
      assert.deepEqual(groups.serving({ app: 'a' }), ['bkdtg_1'])
      assert.deepEqual(groups.serving({ app: 'A' }), [])
    })

    test('follow changes and deletions', async () => {
      const groups = tunnelGroupIndex(store)
      await groups.load()
      await put('bkdtg_5', { app: 'a' })
      await store.write((writer) => writer.replaceFields('bkdtg_1', { labels: { app: 'z' } }))
      await store.write((writer) => writer.remove('bkdtg_2'))
      const ids = ['bkdtg_5', 'bkdtg_1', 'bkdtg_2']
      await groups.apply(ids.map((id, revision) => ({ id, kind: KIND, revision })))
      assert.deepEqual(groups.serving({ app: 'a', dc: '1' }), ['bkdtg_5', 'bkdtg_4'])
      assert.deepEqual(groups.serving({ app: 'z' }), ['bkdtg_1'])
    })
  })
})
