import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { eachStore } from '../../../test/support/databases.ts'
import { openStore, type Store } from '../store/store.ts'
import { readRestrictions } from './stored-restrictions.ts'
import { storeRows, type TestRow } from './testing/test-rows.ts'

const policy = (id: string): TestRow => ({ id, kind: 'ip_policy', fields: {} })
const rule = (id: string, parentId: string, network: string, action = 'allow'): TestRow => ({
  id,
  kind: 'ip_policy_rule',
  parentId,
  fields: { cidr: network, network, action, description: 'not for planes' },
})
const restriction = (id: string, type: string, enforced: boolean, ...ip_policy_ids: string[]): TestRow => ({
  id,
  kind: 'ip_restriction',
  fields: { type, enforced, ip_policy_ids },
})

describe('restrictions that are stored', () => {
  eachStore(
    (databases) => {
      let store: Store
      before(async () => {
        store = await openStore(await databases.url())
        await storeRows(store, [
          policy('ipp_1'),
          policy('ipp_2'),
          rule('ipr_1', 'ipp_1', '192.0.2.0/24'),
          rule('ipr_2', 'ipp_2', '192.0.2.128/25', 'deny'),
          restriction('ipx_1', 'agent', true, 'ipp_1', 'ipp_2'),
          restriction('ipx_2', 'endpoints', false, 'ipp_2'),
        ])
      })
      after(() => store.close())

      test('admit and refuse here as at a plane', async () => {
        const compiled = await store.read(readRestrictions)
        const agent = compiled.get('agent')
        assert.deepEqual(
          ['192.0.2.1', '192.0.2.200', '198.51.100.1'].map((address) => agent?.admits(address)),
          [true, false, false],
        )
        assert.equal(compiled.get('endpoints')?.isEnforced, false)
        assert.equal(compiled.get('api'), undefined)
      })
    },
    ['sqlite'],
  )
})
