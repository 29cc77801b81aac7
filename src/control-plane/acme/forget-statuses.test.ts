import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eachStore } from '../../../test/support/databases.ts'
import { sealedBy, storeRows } from '../records/testing/test-rows.ts'
import { agentIngresses } from '../resources/agent-ingresses.ts'
import { reservedDomains } from '../resources/reserved-domains.ts'
import { openStore } from '../store/store.ts'
import { forgetStatuses } from './forget-statuses.ts'

eachStore(
  (databases) => {
    test('when certificates are no longer ordered, no renewals are announced, and issued certificates stay', async (t) => {
      const store = await sealedBy(await openStore(await databases.url()))
      t.after(() => store.close())
      const managed = { certificate_id: null, status: { renews_at: '2030-01-01T00:00:00Z', provisioning_job: null } }
      const fields = { domain: 'a.test', certificate_management_policy: {}, managed }
      const all = [reservedDomains, agentIngresses].flatMap(({ kind, prefix }) => [
        { id: `${prefix}1`, kind, fields },
        { id: `${prefix}2`, kind, fields: { domain: 'b.test' } },
      ])
      await storeRows(store, all)
      await forgetStatuses(store)
      const rows = await store.read((reader) => reader.resources(all.map(({ id }) => id)))
      const kept = Object.fromEntries(rows.map(({ id, fields: after }) => [id, after.managed]))
      const forgotten = { certificate_id: null, status: null }
      assert.deepEqual(kept, { rd_1: forgotten, rd_2: undefined, agin_1: forgotten, agin_2: undefined })
    })
  },
  ['sqlite'],
)
