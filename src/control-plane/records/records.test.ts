import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { eachStore } from '../../../test/support/databases.ts'
import { IdSource } from '../../lib/ids.ts'
import { WorkerPool } from '../../lib/threads/worker-pool.ts'
import type { ErrorCode } from '../../model/errors.ts'
import { Refusal } from '../../model/errors.ts'
import { resourceOf } from '../resources/index.ts'
import type { Fields } from '../resources/resource.ts'
import { openStore, type Store } from '../store/store.ts'
import { Documents } from './check-documents.ts'
import { authenticate, type Principal } from './find-caller.ts'
import { KeyMaker } from './key-maker.ts'
import { nobodyPresent } from './online-lists.ts'
import { Records, rootOf } from './records.ts'
import { requestKeyOf } from './server-keys.ts'
import { sealedBy, storeRows, testSealer } from './testing/test-rows.ts'

const ada: Principal = { id: 'usr_ada', role: 'admin', keyId: 'ak_ada' }
const bob: Principal = { id: 'usr_bob', role: 'member', keyId: 'ak_bob' }
const texts = { description: '', metadata: '' }

describe('stored resources', () => {
  eachStore((databases) => {
    let store: Store
    let records: Records
    const pool = new WorkerPool(new URL('../../server/compose/control-thread.ts', import.meta.url))
    let revision: number
    /** The tunnels of every group. */
    let online: readonly string[] = []
    before(async () => {
      store = await sealedBy(await openStore(await databases.url()))
      const now = Date.now
      const around = { tcpPorts: { from: 20_000, to: 20_999 }, publicHttpsPort: 8443, domain: 'localhost', region: 'x' }
      records = new Records({
        store,
        ids: new IdSource({ now }),
        now,
        sealer: testSealer,
        around,
        presence: { ...nobodyPresent, tunnelsWith: async () => online },
        checks: new Documents(pool),
        keys: new KeyMaker(pool),
        requestKey: requestKeyOf(store, testSealer, now),
      })
      await storeRows(store, [
        { id: ada.id, kind: 'user', fields: { name: 'Ada', role: 'admin', active: true } },
        { id: bob.id, kind: 'user', fields: { name: 'Bob', role: 'member', active: true } },
      ])
      revision = await store.feed.latest()
    })
    after(async () => {
      await pool.close()
      await store.close()
    })

    const create = (kind: string, fields: Fields, { by = ada, parent = null as string | null } = {}) =>
      records.create(resourceOf(kind), by, { ...texts, ...fields }, parent)
    const get = (kind: string, id: string, by = ada) => records.get(resourceOf(kind), by, { id })
    const group = () => create('tunnel_group_backend', { labels: { app: 'web' } })
    /** The changes in the feed since the last call. */
    const noted = async (): Promise<string[]> => {
      const changes = await store.feed.since(revision)
      assert.ok(changes)
      revision = changes.at(-1)?.revision ?? revision
      return changes.map(({ kind, id }) => `${kind} ${id}`)
    }
    /** The whole content of the database as one text. */
    const everyRow = () =>
      store.snapshot(async (rows) => {
        let text = ''
        for await (const { values } of rows) text += `${values.join(' ')}\n`
        return text
      })
    const refused = (work: Promise<unknown>, code: ErrorCode, message = /./) =>
      assert.rejects(work, (error) => {
        assert.ok(error instanceof Refusal, String(error))
        assert.deepEqual([error.code, message.test(error.message)], [code, true], error.message)
        return true
      })

    test('a created resource can be read, and the feed records it once', async () => {
      await noted()
      const made = await create('ip_policy', { description: 'office' })
      assert.match(made.id, /^ipp_[0-9A-Za-z]{27}$/)
      const { fields } = await get('ip_policy', made.id)
      assert.deepEqual(fields, { description: 'office', metadata: '' })
      assert.deepEqual(await noted(), [`ip_policy ${made.id}`])
    })

    test('the token of a key is shown once, authenticates, and is stored as a hash', async () => {
      const { id, token } = await create('api_key', {}, { by: bob })
      assert.ok(token?.startsWith(`${id.slice('ak_'.length)}_`))
      assert.equal((await get('api_key', id)).token, null)
      assert.deepEqual(await authenticate(store, token ?? ''), { id: bob.id, role: 'member', keyId: id })
      const rows = await everyRow()
      assert.ok(rows.includes(id) && !rows.includes(token ?? 'no token'))
    })

    test('a member sees only its own keys (D22)', async () => {
      const [hers, his] = [await create('api_key', {}), await create('api_key', {}, { by: bob })]
      const { records: seen } = await records.list(resourceOf('api_key'), bob, { limit: 100 })
      assert.ok(seen.some(({ id }) => id === his.id) && !seen.some(({ id }) => id === hers.id))
      await refused(get('api_key', hers.id, bob), 'NOT_FOUND')
      await refused(records.remove(resourceOf('api_key'), bob, { id: hers.id }), 'NOT_FOUND')
      await refused(records.update(resourceOf('api_key'), bob, { id: hers.id }, {}), 'NOT_FOUND')
      await refused(create('api_key', { owner_id: ada.id }, { by: bob }), 'OWNER_NOT_ALLOWED')
      assert.equal((await create('api_key', { owner_id: bob.id })).ownerId, bob.id)
    })

    test('pages are newest first, and the last one is marked as such', async () => {
      const ids: string[] = []
      for (let i = 0; i < 3; i++) ids.unshift((await create('ip_policy', { metadata: 'paged' })).id)
      const kind = resourceOf('ip_policy')
      const first = await records.list(kind, ada, { limit: 2 })
      assert.deepEqual([first.records.map(({ id }) => id), first.hasMore], [ids.slice(0, 2), true])
      const all = await records.list(kind, ada, { limit: 100, beforeId: ids[1] ?? '' })
      assert.deepEqual([all.records[0]?.id, all.hasMore], [ids[2], false])
    })

    test('pages end when they take 8 MiB, with the routes of edges and without the rules of policies', async () => {
      const quarter = 2 * 1024 * 1024
      const large = 'x'.repeat(quarter - 1000)
      const rows = (kind: string, child: string, prefix: string) =>
        ['1', '2', '3', '4', '5'].flatMap((n) => [
          { id: `${prefix}${n}`, kind, fields: { hostports: [], metadata: '' } },
          { id: `${prefix}${n}_a`, kind: child, parentId: `${prefix}${n}`, fields: { match: '/', metadata: large } },
        ])
      await storeRows(store, rows('https_edge', 'https_edge_route', 'edghts_large'))
      await storeRows(store, rows('ip_policy', 'ip_policy_rule', 'ipp_large'))
      const pageOf = async (kind: string, beforeId: string) => {
        let turns = 0
        const page = await records.list(resourceOf(kind), ada, { limit: 5, beforeId }, async () => void turns++)
        return { ids: page.records.map(({ id }) => id.slice(-1)).join(''), hasMore: page.hasMore, turns }
      }
      assert.deepEqual(await pageOf('https_edge', 'edghts_large9'), { ids: '5432', hasMore: true, turns: 1 })
      assert.equal((await pageOf('https_edge', 'edghts_large2')).ids[0], '1')
      assert.deepEqual(await pageOf('ip_policy', 'ipp_large9'), { ids: '54321', hasMore: true, turns: 0 })
      assert.equal(await records.isLarge(resourceOf('https_edge'), 'edghts_large1'), true)
    })

    test('pages of groups end when they show many tunnels, and wait for their turn', async () => {
      const ids = ['1', '2', '3'].map((n) => `bkdtg_crowd${n}`)
      await storeRows(
        store,
        ids.map((id) => ({ id, kind: 'tunnel_group_backend', fields: { labels: { app: 'crowd' } } })),
      )
      online = Array.from({ length: 20_000 }, (_, i) => `tn_${i}`)
      let turns = 0
      const page = await records.list(
        resourceOf('tunnel_group_backend'),
        ada,
        { limit: 3, beforeId: 'bkdtg_crowd9' },
        async () => void turns++,
      )
      online = []
      assert.deepEqual([page.records.map(({ id }) => id), page.hasMore, turns], [ids.slice(1).toReversed(), true, 1])
    })

    test('a page has at least one item, however large', async () => {
      const fields = { hostports: [], metadata: 'x'.repeat(9 * 1024 * 1024) }
      await storeRows(
        store,
        ['1', '2'].map((n) => ({ id: `edgtls_vast${n}`, kind: 'tls_edge', fields })),
      )
      for (const [beforeId, seen] of [
        ['edgtls_vast9', 'edgtls_vast2'],
        ['edgtls_vast2', 'edgtls_vast1'],
      ] as const) {
        const page = await records.list(resourceOf('tls_edge'), ada, { limit: 100, beforeId })
        assert.equal(page.records[0]?.id, seen)
      }
    })

    test('an update changes the fields it names, and replaces a module as a whole (D10)', async () => {
      const [one, other] = [await group(), await group()]
      const made = await create('tcp_edge', {
        description: 'before',
        hostports: ['h:20001'],
        backend: { enabled: true, backend_id: one.id },
        ip_restriction: { enabled: true, ip_policy_ids: [(await create('ip_policy', {})).id] },
      })
      const input = { metadata: 'new', backend: { enabled: false, backend_id: other.id } }
      const updated = await records.update(resourceOf('tcp_edge'), ada, { id: made.id }, input)
      const { description, metadata, hostports } = updated.fields
      assert.deepEqual([description, metadata, hostports], ['before', 'new', ['h:20001']])
      assert.deepEqual(updated.modules.get('backend'), { enabled: false, backend_id: other.id })
      assert.deepEqual(updated.modules.get('ip_restriction'), made.modules.get('ip_restriction'))
      assert.deepEqual((await get('tcp_edge', made.id)).modules, updated.modules)
      // A resource that is no longer named can be deleted; one that is named now cannot.
      await records.remove(resourceOf('tunnel_group_backend'), ada, { id: one.id })
      await refused(records.remove(resourceOf('tunnel_group_backend'), ada, { id: other.id }), 'STILL_REFERENCED')
    })

    test('an empty update records no change', async () => {
      const made = await group()
      await noted()
      await records.update(resourceOf('tunnel_group_backend'), ada, { id: made.id }, {})
      assert.deepEqual(await noted(), [])
    })

    test('a refused write stores nothing and records no change', async () => {
      const before = await records.list(resourceOf('tcp_edge'), ada, { limit: 100 })
      await noted()
      const nobody = { enabled: true, backend_id: `bkdtg_${'0'.repeat(27)}` }
      await refused(create('tcp_edge', { hostports: ['h:20002'], backend: nobody }), 'UNKNOWN_REFERENCE', /backend_id/)
      await refused(create('tcp_edge', { hostports: ['h:9'] }), 'BAD_HOSTPORT_PORT')
      const { records: after } = await records.list(resourceOf('tcp_edge'), ada, { limit: 100 })
      assert.equal(after.length, before.records.length)
      assert.deepEqual(await noted(), [])
      // The port that the first write asked for is free.
      await create('tcp_edge', { hostports: ['h:20002'] })
    })

    test('of several creations that claim one name at once, one succeeds and the others are refused by name', async () => {
      const outcomes = await Promise.allSettled(
        ['a', 'b', 'c'].map((metadata) => create('tls_edge', { metadata, hostports: ['race.example.com:443'] })),
      )
      const lost = outcomes.flatMap((each) => (each.status === 'rejected' ? [each.reason as Refusal] : []))
      assert.deepEqual(
        lost.map(({ code }) => code),
        ['HOSTPORT_IN_USE', 'HOSTPORT_IN_USE'],
      )
    })

    test('a change of a route or rule is announced under its parent', async () => {
      const edge = await create('https_edge', { hostports: ['routes.example.com:443'] })
      const policy = await create('ip_policy', {})
      await noted()
      const route = await create('https_edge_route', { match: '/', match_type: 'path_prefix' }, { parent: edge.id })
      assert.deepEqual(await noted(), [`https_edge ${edge.id}`])
      const rule = await create('ip_policy_rule', { cidr: '10.0.0.0/8', action: 'allow', ip_policy_id: policy.id })
      assert.deepEqual(await noted(), [`ip_policy ${policy.id}`])
      await records.remove(resourceOf('ip_policy_rule'), ada, { id: rule.id })
      assert.deepEqual(await noted(), [`ip_policy ${policy.id}`])
      assert.deepEqual(rootOf(resourceOf('https_edge_route'), route), ['https_edge', edge.id])
      const [shown] = (await get('https_edge', edge.id)).children
      assert.equal(shown?.id, route.id)
    })

    test('a parent that does not exist is 404 in a path and 400 in a body (D28)', async () => {
      const route = { match: '/', match_type: 'path_prefix' }
      await refused(create('https_edge_route', route, { parent: `edghts_${'0'.repeat(27)}` }), 'NOT_FOUND')
      const policy = await create('ip_policy', {})
      await refused(create('https_edge_route', route, { parent: policy.id }), 'NOT_FOUND')
      const rule = { cidr: '10.0.0.0/8', action: 'allow', ip_policy_id: `ipp_${'0'.repeat(27)}` }
      await refused(create('ip_policy_rule', rule), 'UNKNOWN_REFERENCE', /ip_policy_id/)
    })

    test('a route under another edge is not found (D29)', async () => {
      const [one, other] = [await create('https_edge', {}), await create('https_edge', {})]
      const { id } = await create('https_edge_route', { match: '/', match_type: 'path_prefix' }, { parent: one.id })
      const kind = resourceOf('https_edge_route')
      assert.equal((await records.get(kind, ada, { id, parentId: one.id })).id, id)
      await refused(records.get(kind, ada, { id, parentId: other.id }), 'NOT_FOUND')
    })

    test('deleting a bot deletes its keys, and the feed records each (D24)', async () => {
      const bot = await create('bot_user', { name: 'builder' })
      const key = await create('api_key', { owner_id: bot.id })
      await noted()
      await records.remove(resourceOf('bot_user'), ada, { id: bot.id })
      assert.deepEqual((await noted()).sort(), [`api_key ${key.id}`, `bot_user ${bot.id}`].sort())
      await refused(get('api_key', key.id), 'NOT_FOUND')
      assert.equal(await authenticate(store, key.token ?? ''), undefined)
    })

    test('secrets are sealed in the store and readable in answers', async () => {
      const edge = await create('https_edge', {})
      const verified = { enabled: true, provider: 'github', secret: 'a secret between us' }
      const fields = { match: '/', match_type: 'path_prefix', webhook_verification: verified }
      const { id } = await create('https_edge_route', fields, { parent: edge.id })
      const shown = await records.get(resourceOf('https_edge_route'), ada, { id, parentId: edge.id })
      assert.deepEqual(shown.modules.get('webhook_verification'), verified)
      const rows = await everyRow()
      assert.ok(rows.includes('webhook_verification') && !rows.includes('a secret between us'))
    })

    test('modules that contradict each other are refused before anything is written', async () => {
      const authority = { enabled: true, certificate_authority_ids: [`ca_${'0'.repeat(27)}`] }
      const fields = { mutual_tls: authority, tls_termination: { enabled: true, terminate_at: 'upstream' } }
      await refused(create('tls_edge', fields), 'MODULE_NEEDS_TERMINATION')
    })
  })
})
