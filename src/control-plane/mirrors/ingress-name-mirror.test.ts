import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eachStore } from '../../../test/support/databases.ts'
import { IngressNames } from '../../data-plane/mirrored/ingress-names.ts'
import type { IngressNameChange } from '../../link/planes/plane-calls.ts'
import { sealedBy, storeRows } from '../records/testing/test-rows.ts'
import { agentIngresses } from '../resources/agent-ingresses.ts'
import { openStore } from '../store/store.ts'
import { IngressNameFeed } from './ingress-name-mirror.ts'

const { kind } = agentIngresses
const row = (id: string, domain: string, policy: object | null = null) => ({
  id,
  kind,
  fields: { domain, certificate_management_policy: policy },
})

eachStore((databases) => {
  test('a data plane knows the names of all ingresses, and is told only of those that change', async (t) => {
    const store = await sealedBy(await openStore(await databases.url()))
    t.after(() => store.close())
    const sent: IngressNameChange[] = []
    const names = new IngressNames()
    const feed = new IngressNameFeed(store, (change) => {
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
    const told = sent.length
    await feed.apply([{ revision: 6, kind: 'https_edge', id: 'edghts_1' }])
    assert.equal(sent.length, told)
  })
})
