import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { eachStore } from '../../../test/support/databases.ts'
import type { PartRestriction } from '../../link/planes/plane-calls.ts'
import { openStore, type Store } from '../store/store.ts'
import { RestrictionFeed, readRestrictions } from './stored-restrictions.ts'
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
      const sent: (readonly PartRestriction[])[] = []
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

      const byPart = (all: readonly PartRestriction[] = []) => new Map(all.map((each) => [each.part, each]))
      const deny = { action: 'deny', network: '192.0.2.128/25' }

      test('are sent as a whole and as plain data, whenever they may have changed', async () => {
        const feed = new RestrictionFeed(store, async (all) => void sent.push(all))
        await feed.load()
        const found = byPart(sent[0])
        assert.deepEqual(found.get('agent'), {
          part: 'agent',
          isEnforced: true,
          rules: [{ action: 'allow', network: '192.0.2.0/24' }, deny],
        })
        assert.deepEqual(found.get('endpoints'), { part: 'endpoints', isEnforced: false, rules: [deny] })
        await feed.apply([])
        await feed.apply([{ kind: 'tls_edge', id: 'edgtls_1', revision: 1 }])
        assert.equal(sent.length, 1)
        for (const kind of ['ip_restriction', 'ip_policy']) await feed.apply([{ kind, id: 'x', revision: 2 }])
        assert.equal(sent.length, 3)
        assert.deepEqual(sent[2], sent[0])
      })

      test('do not count as sent when a plane does not answer', async () => {
        const feed = new RestrictionFeed(store, () => Promise.reject(new Error('no answer')))
        await assert.rejects(feed.load(), /no answer/)
        await assert.rejects(feed.apply([{ kind: 'ip_policy', id: 'ipp_1', revision: 1 }]), /no answer/)
      })

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
