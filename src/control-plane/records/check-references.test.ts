import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { eachStore } from '../../../test/support/databases.ts'
import { Refusal } from '../../model/errors.ts'
import { resourceOf } from '../resources/index.ts'
import type { Claim } from '../resources/resource.ts'
import { openStore, type Store, StoreConflict } from '../store/store.ts'
import { checkClaims, checkMentions, checkUnreferenced, setClaims, setMentions } from './check-references.ts'
import { backend, edge, failover, group, sealedBy, storeRows } from './testing/test-rows.ts'

const backends = ['tunnel_group_backend', 'failover_backend']
const mention = (id: string, field = 'backends') => ({ field, id, kinds: backends })

function claim(key: string, scope = 'edge_name'): Claim {
  return { scope, key, taken: { code: 'HOSTPORT_IN_USE', msg: `${key} belongs to another edge` } }
}

describe('references and claims', () => {
  eachStore((databases) => {
    let store: Store
    before(async () => {
      store = await sealedBy(await openStore(await databases.url()))
      await storeRows(store, [
        group('bkdtg_1'),
        group('bkdtg_2'),
        group('bkdtg_popular'),
        ...Array.from({ length: 7 }, (_, i) => failover(`bkdfo_${i}`, 'bkdtg_popular')),
        edge('edgtcp_1', 'tcp_edge', [], { backend: backend('bkdtg_2') }),
        edge('edgtls_1', 'tls_edge', []),
        edge('edgtls_2', 'tls_edge', []),
      ])
    })
    after(() => store.close())

    const referredBy = async (id: string) => [...(await store.read((reader) => reader.referredBy([id]))).keys()].sort()

    test('references to existing resources pass, even repeated', async () => {
      await store.read((reader) => checkMentions(reader, [mention('bkdtg_1'), mention('bkdfo_0'), mention('bkdtg_1')]))
    })

    for (const [what, id, shown] of [
      ['does not exist', 'bkdtg_nobody', 'bkdtg_nobody'],
      ['is of another kind', 'edgtcp_1', 'edgtcp_1'],
      ['is endlessly long', 'x'.repeat(1000), `${'x'.repeat(61)}...`],
    ] as const) {
      test(`an id that ${what} is refused by name, with the kinds it could be (D28)`, async () => {
        const asked = store.read((reader) => checkMentions(reader, [mention('bkdtg_1'), mention(id, 'backends[1]')]))
        await assert.rejects(asked, (error) => {
          assert.ok(error instanceof Refusal)
          assert.deepEqual([error.code, error.field], ['UNKNOWN_REFERENCE', 'backends[1]'])
          assert.equal(
            error.message,
            `\`backends[1]\`: there is no tunnel group backend (\`bkdtg_…\`) or failover backend (\`bkdfo_…\`) with the id \`${shown}\``,
          )
          return true
        })
      })
    }

    test('a resource without referrers may be deleted', async () => {
      await store.read((reader) => checkUnreferenced(reader, resourceOf('tunnel_group_backend'), 'bkdtg_1'))
    })

    test('a resource that a module refers to may not be deleted, and the error names the module', async () => {
      const asked = store.read((reader) => checkUnreferenced(reader, resourceOf('tunnel_group_backend'), 'bkdtg_2'))
      await assert.rejects(asked, /this tunnel group backend is still referred to by `edgtcp_1` \(backend\); change/)
    })

    test('the error names at most five referrers', async () => {
      const kind = resourceOf('tunnel_group_backend')
      const asked = store.read((reader) => checkUnreferenced(reader, kind, 'bkdtg_popular'))
      await assert.rejects(asked, ({ code, message }: Refusal) => {
        assert.equal(code, 'STILL_REFERENCED')
        assert.equal(message.match(/\(backends\)/g)?.length, 5)
        assert.match(message, /`bkdfo_4` \(backends\) and others;/)
        return true
      })
    })

    test('the database itself refuses to delete a resource with referrers', async () => {
      await assert.rejects(
        store.write((writer) => writer.remove('bkdtg_2')),
        StoreConflict,
      )
    })

    test('references are replaced field by field; those of modules stay', async () => {
      await store.write((writer) => setMentions(writer, 'edgtcp_1', [mention('bkdtg_1', 'first[0]')], []))
      assert.deepEqual(await referredBy('edgtcp_1'), ['bkdtg_1', 'bkdtg_2'])
      await store.write((writer) =>
        setMentions(
          writer,
          'edgtcp_1',
          [mention('bkdfo_0', 'second[0]'), mention('bkdfo_1', 'second[1]')],
          [mention('bkdtg_1', 'first[0]')],
        ),
      )
      assert.deepEqual(await referredBy('edgtcp_1'), ['bkdfo_0', 'bkdfo_1', 'bkdtg_2'])
      await store.write((writer) => setMentions(writer, 'edgtcp_1', [], [mention('bkdfo_0', 'second[0]')]))
      assert.deepEqual(await referredBy('edgtcp_1'), ['bkdtg_2'])
    })

    test('a claim is free for its holder and taken for others', async () => {
      await store.write((writer) => setClaims(writer, 'edgtls_1', [claim('a.test'), claim('b.test')], []))
      const asked = (holder: string | null, ...claims: Claim[]) =>
        store.read((reader) => checkClaims(reader, claims, holder))
      await asked('edgtls_1', claim('a.test'), claim('c.test'))
      await asked('edgtls_2', claim('c.test'), claim('a.test', 'another scope'))
      await assert.rejects(asked('edgtls_2', claim('c.test'), claim('b.test')), /b\.test belongs to another edge/)
      await assert.rejects(asked(null, claim('a.test')), ({ code }: Refusal) => code === 'HOSTPORT_IN_USE')
    })

    test('a released claim is free, and scopes are independent', async () => {
      const before = [claim('old.test'), claim('22', 'port')]
      await store.write((writer) => setClaims(writer, 'edgtls_2', before, []))
      await store.write((writer) => setClaims(writer, 'edgtls_2', [claim('new.test')], before))
      const holder = (scope: string, key: string) => store.read((reader) => reader.holder(scope, key))
      assert.deepEqual(
        [await holder('edge_name', 'old.test'), await holder('edge_name', 'new.test'), await holder('port', '22')],
        [undefined, 'edgtls_2', undefined],
      )
    })

    test('the database itself allows one holder per claim', async () => {
      await store.write((writer) => setClaims(writer, 'edgtls_1', [claim('one.test')], [claim('a.test')]))
      const asked = store.write((writer) => setClaims(writer, 'edgtls_2', [claim('one.test')], []))
      await assert.rejects(asked, ({ trouble }: StoreConflict) => trouble === 'taken')
    })
  })
})
