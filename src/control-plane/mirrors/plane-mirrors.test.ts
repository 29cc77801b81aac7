import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { eachStore } from '../../../test/support/databases.ts'
import { IngressNames } from '../../data-plane/mirrored/ingress-names.ts'
import type { IngressName, MirroredChange, PartRestriction } from '../../link/planes/plane-calls.ts'
import { sealedBy, storeRows, type TestRow } from '../records/testing/test-rows.ts'
import { agentIngresses } from '../resources/agent-ingresses.ts'
import { captures } from '../resources/captures.ts'
import { CHALLENGE } from '../store/certificate-reader.ts'
import { openStore, type Store } from '../store/store.ts'
import { ingressNames, nameChallenges, partRestrictions, runningCaptures } from './plane-mirrors.ts'

describe('a data plane', () => {
  eachStore((databases) => {
    let store: Store
    beforeEach(async () => {
      store = await sealedBy(await openStore(await databases.url()))
    })
    afterEach(() => store.close())

    test('is told of running captures, and of an end that it missed', async () => {
      const { kind } = captures
      const fields = { edge_id: 'edghts_1', bodies: true, max_body_bytes: 10, duration: 60, unmask: false }
      const sent: string[][] = []
      const feed = () => runningCaptures(store, async (running) => sent.push(running.map(({ id }) => id)))
      await storeRows(store, [{ id: 'capt_1', kind, fields }])
      await feed().load()
      await store.write((writer) => writer.remove('capt_1'))
      // From a control plane that has replaced the first.
      await feed().load()
      assert.deepEqual(sent, [['capt_1'], []])
    })

    test('is told of every capture that runs when one of them starts or ends', async () => {
      const { kind } = captures
      const row = (id: string) => ({
        id,
        kind,
        fields: { edge_id: id, bodies: false, max_body_bytes: 10, duration: 60 },
      })
      const sent: string[][] = []
      const feed = runningCaptures(store, async (running) => sent.push(running.map(({ id }) => id)))
      await storeRows(store, [row('capt_1')])
      await feed.load()
      await storeRows(store, [row('capt_2')])
      await feed.apply([{ revision: 1, kind, id: 'capt_2' }])
      await store.write((writer) => writer.remove('capt_1'))
      await feed.apply([{ revision: 2, kind, id: 'capt_1' }])
      assert.deepEqual(sent, [['capt_1'], ['capt_1', 'capt_2'], ['capt_2']])
    })

    test('is told when there are no challenges', async () => {
      const sent: unknown[] = []
      await nameChallenges(store, async (change) => sent.push(change)).load()
      assert.deepEqual(sent, [{ isAll: true, set: [], removed: [] }])
    })

    test('forgets a challenge that it was shown directly, and that was gone before the feed told of it', async () => {
      const sent: unknown[] = []
      const feed = nameChallenges(store, async (change) => sent.push(change))
      await feed.load()
      await feed.apply([{ revision: 1, kind: CHALLENGE, id: 'a.test' }])
      assert.deepEqual(sent.at(-1), { isAll: false, set: [], removed: ['a.test'] })
    })

    test('knows the names of all ingresses, and is told only of those that change', async () => {
      const { kind } = agentIngresses
      const row = (id: string, domain: string, policy: object | null = null) => ({
        id,
        kind,
        fields: { domain, certificate_management_policy: policy },
      })
      const sent: MirroredChange<IngressName>[] = []
      const names = new IngressNames()
      const feed = ingressNames(store, async (change) => {
        sent.push(change)
        names.take(structuredClone(change))
      })
      await feed.load()
      assert.deepEqual(sent, [{ isAll: true, removed: [], set: [] }], 'also that there are none')

      await storeRows(store, [row('agin_1', 'A.test.'), row('agin_2', 'bücher.test', { private_key_type: 'rsa' })])
      await feed.load()
      assert.deepEqual(names.get('a.test'), { name: 'a.test', isPublic: false })
      assert.deepEqual(names.get('xn--bcher-kva.test'), { name: 'xn--bcher-kva.test', isPublic: true })
      assert.ok(names.hasPublic)

      // In one batch: one is deleted, and another takes its name.
      await store.write((writer) => writer.remove('agin_1'))
      await storeRows(store, [row('agin_3', 'a.test', { private_key_type: 'ecdsa' })])
      await feed.apply([
        { revision: 1, kind, id: 'agin_1' },
        { revision: 2, kind, id: 'agin_3' },
      ])
      assert.deepEqual(sent.at(-1), { isAll: false, removed: ['a.test'], set: [{ name: 'a.test', isPublic: true }] })
      assert.ok(names.get('a.test')?.isPublic)

      for (const id of ['agin_2', 'agin_3']) await store.write((writer) => writer.remove(id))
      await feed.apply([{ revision: 3, kind, id: 'agin_2' }])
      assert.deepEqual([names.get('xn--bcher-kva.test'), names.get('a.test')?.isPublic], [undefined, true])
      await feed.apply([
        { revision: 4, kind: 'https_edge', id: 'edghts_1' },
        { revision: 5, kind, id: 'agin_3' },
      ])
      assert.equal(names.get('a.test'), undefined)
      assert.ok(!names.hasPublic)
      const reported = sent.length
      await feed.apply([{ revision: 6, kind: 'https_edge', id: 'edghts_1' }])
      assert.equal(sent.length, reported)
    })

    describe('is sent the restrictions', () => {
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
      beforeEach(() =>
        storeRows(store, [
          policy('ipp_1'),
          policy('ipp_2'),
          rule('ipr_1', 'ipp_1', '192.0.2.0/24'),
          rule('ipr_2', 'ipp_2', '192.0.2.128/25', 'deny'),
          restriction('ipx_1', 'agent', true, 'ipp_1', 'ipp_2'),
          restriction('ipx_2', 'endpoints', false, 'ipp_2'),
        ]),
      )
      const deny = { action: 'deny', network: '192.0.2.128/25' }
      const byPart = (all: readonly PartRestriction[] = []) => new Map(all.map((each) => [each.part, each]))

      test('as a whole and as plain data, whenever they may have changed', async () => {
        const sent: (readonly PartRestriction[])[] = []
        const feed = partRestrictions(store, async (all) => void sent.push(all))
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
        await store.write((writer) => writer.remove('ipx_1'))
        await feed.apply([{ kind: 'ip_restriction', id: 'ipx_1', revision: 3 }])
        assert.deepEqual([...byPart(sent[3]).keys()], ['endpoints'])
      })

      test('again when it did not answer', async () => {
        const feed = partRestrictions(store, () => Promise.reject(new Error('no answer')))
        await assert.rejects(feed.load(), /no answer/)
        await assert.rejects(feed.apply([{ kind: 'ip_policy', id: 'ipp_1', revision: 1 }]), /no answer/)
      })
    })
  })
})
