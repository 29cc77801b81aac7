import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eachStore } from '../../../test/support/databases.ts'
import { sealedBy, storeRows } from '../records/testing/test-rows.ts'
import { httpsEdges } from '../resources/https-edges.ts'
import { tlsEdges } from '../resources/tls-edges.ts'
import { openStore } from '../store/store.ts'
import { StoredParts } from './stored-parts.ts'

eachStore(
  (databases) => {
    test('values of more resources than are read at once are kept, changed and dropped', async (t) => {
      const store = await sealedBy(await openStore(await databases.url()))
      t.after(() => store.close())
      const kind = httpsEdges.kind
      const ids = Array.from({ length: 250 }, (_, i) => `e${String(i).padStart(4, '0')}`)
      await storeRows(store, [
        ...ids.map((id) => ({ id, kind, fields: { hostports: [], description: id } })),
        { id: 'other', kind: tlsEdges.kind, fields: { hostports: [], description: 'other' } },
      ])
      const parts = new StoredParts({
        store,
        kinds: [kind],
        partOf: ({ fields }) => (fields.description === 'e0007' ? undefined : { text: String(fields.description) }),
      })
      await parts.load()
      assert.equal(parts.byId.size, 249)
      assert.equal(parts.byId.get('other'), undefined)

      await store.write(async (writer) => {
        await writer.replaceFields('e0007', { hostports: [], description: 'seven' })
        await writer.replaceFields('e0008', { hostports: [], description: 'eight' })
        await writer.remove('e0009')
      })
      const changes = ['e0007', 'e0008', 'e0009', 'e0008'].map((id, i) => ({ kind, id, revision: i + 1 }))
      const changed = await parts.apply(changes)
      const before = { e0008: { text: 'e0008' }, e0009: { text: 'e0009' } }
      const after = { e0007: { text: 'seven' }, e0008: { text: 'eight' } }
      assert.deepEqual(Object.fromEntries(changed?.before ?? []), before)
      assert.deepEqual(Object.fromEntries(changed?.after ?? []), after)
      assert.equal(parts.byId.size, 249)
      assert.equal(await parts.apply([]), undefined)
    })
  },
  ['sqlite'],
)
