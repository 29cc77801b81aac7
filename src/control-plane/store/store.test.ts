/** The contract of the store, which both databases must keep. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { changeDatabase } from '../../../test/support/change-database.ts'
import { eachStore } from '../../../test/support/databases.ts'
import type { StoredResource } from './reader.ts'
import type { StoredRow } from './rows.ts'
import { openStore, type Store, StoreConflict } from './store.ts'

type NewResource = Omit<StoredResource, 'modules'>

let count = 0
/** A resource with a new id, newer than all before. */
function thing(given: Partial<NewResource> = {}): NewResource {
  const id = `t_${String(++count).padStart(6, '0')}`
  const createdAt = '2026-01-02T03:04:05Z'
  return { id, kind: 'thing', parentId: null, ownerId: null, createdAt, fields: { n: count }, ...given }
}

const stored = (resource: NewResource, modules: [string, object][] = []) => ({
  ...resource,
  modules: new Map(modules),
})
const isConflict = (trouble: 'taken' | 'dangling') => (error: unknown) =>
  error instanceof StoreConflict && error.trouble === trouble

describe('a store', () => {
  eachStore((kind) => {
    let url: string
    let store: Store
    before(async () => {
      url = await kind.emptyUrl()
      store = await openStore(url)
    })
    after(() => store.close())

    const insert = async (...resources: NewResource[]) => {
      await store.write(async (writer) => {
        for (const resource of resources) await writer.insert(resource)
      })
      return resources
    }
    const get = (id: string, of = 'thing') => store.read((reader) => reader.resource(of, id))

    test('migrates a database of an earlier version with all its content', async () => {
      const old = await kind.emptyUrl()
      const first = await openStore(old)
      const kept = thing()
      await first.write((writer) => writer.insert(kept))
      await first.close()
      // The schema before used answers, nodes and certificate orders were added.
      const ordered = ['acme_challenges', 'acme_orders', 'managed_names', 'acme_accounts']
      const later = [
        ...ordered,
        'place_holders',
        'places',
        'online_labels',
        'online_tunnels',
        'online_sessions',
        'nodes',
      ]
      const migrations = `delete from kysely_migration where name > '0003'`
      await changeDatabase(old, [...[...later, 'used_answers'].map((table) => `drop table ${table}`), migrations])
      const again = await openStore(old)
      assert.deepEqual(await again.read((reader) => reader.resource('thing', kept.id)), stored(kept))
      const use = () => again.write(({ logins }) => logins.useAnswer({ key: 'k', expires_at: 1 }))
      assert.deepEqual([await use(), await use()], [true, false])
      await again.close()
    })

    test('rows of one database fill the other', async () => {
      const [from, into] = [await openStore(await kind.emptyUrl()), await openStore(await kind.url())]
      await from.write(async (writer) => {
        await writer.insert(thing())
        await writer.logins.useAnswer({ key: 'k', expires_at: 1_800_000_000_000 })
      })
      const rowsOf = (each: Store) =>
        each.snapshot(async (rows) => {
          const all: StoredRow[] = []
          for await (const row of rows) all.push(row)
          return all
        })
      const rows = await rowsOf(from)
      assert.deepEqual(rows.at(-1), { table: 'used_answers', values: ['k', '1800000000000'] })
      await from.snapshot((all) => into.fill(all))
      assert.deepEqual(await rowsOf(into), rows)
      assert.deepEqual(await into.write(({ logins }) => logins.removeAnswers(1_800_000_000_000, 9)), ['k'])
      await from.close()
      await into.close()
    })

    test('names its dialect', () => assert.equal(store.dialect, kind.name))

    test('returns exactly what was stored', async () => {
      const fields = { text: 'ünï \u{1F600} \' " \\ \n \u0001', none: null, deep: { list: [1, 2.5, true, { a: '' }] } }
      const owner = thing({ kind: 'user' })
      const parent = thing()
      const child = thing({ ownerId: owner.id, parentId: parent.id, fields })
      await insert(owner, parent, child)
      assert.deepEqual(await get(child.id), stored(child))
    })

    test('finds a resource only by its own kind, and nothing that does not exist', async () => {
      const [one] = await insert(thing())
      assert.equal(await get(one?.id ?? '', 'other'), undefined)
      assert.equal(await get('t_none'), undefined)
    })

    test('an id can be used only once', async () => {
      const [one] = await insert(thing())
      assert.ok(one)
      await assert.rejects(insert({ ...one, kind: 'other' }), isConflict('taken'))
      assert.deepEqual(await get(one.id), stored(one))
    })

    test('pages go from newest to oldest, before an id that need not exist, of one owner or all', async () => {
      const mine = thing({ kind: 'user' })
      const made = Array.from({ length: 7 }, (_, i) => thing({ kind: 'paged', ownerId: i % 2 ? mine.id : null }))
      await insert(mine, ...made)
      const newest = made.map(({ id }) => id).reverse()
      const ids = async (page: { ownerId?: string; beforeId?: string; limit: number }) =>
        (await store.read((reader) => reader.page({ kind: 'paged', ...page }))).map(({ id }) => id)
      assert.deepEqual(await ids({ limit: 100 }), newest)
      assert.deepEqual(await ids({ limit: 3 }), newest.slice(0, 3))
      assert.deepEqual(await ids({ limit: 3, beforeId: newest[2] ?? '' }), newest.slice(3, 6))
      assert.deepEqual(await ids({ limit: 3, beforeId: `${newest[2]}x` }), newest.slice(2, 5))
      assert.deepEqual(await ids({ limit: 3, beforeId: '' }), [])
      assert.deepEqual(await ids({ limit: 100, ownerId: mine.id }), [newest[1], newest[3], newest[5]])
      await store.write((writer) => writer.remove(newest[2] ?? ''))
      assert.deepEqual(await ids({ limit: 2, beforeId: newest[2] ?? '' }), newest.slice(3, 5))
    })

    test('a page counts resources, not their modules', async () => {
      const made = [thing({ kind: 'laden' }), thing({ kind: 'laden' }), thing({ kind: 'laden' })]
      await insert(...made)
      await store.write(async (writer) => {
        for (const { id } of made) for (const name of ['a', 'b', 'c']) await writer.putModule(id, name, { id, name })
      })
      const page = await store.read((reader) => reader.page({ kind: 'laden', limit: 2 }))
      assert.deepEqual(
        page.map(({ id, modules }) => [id, [...modules.keys()].sort()]),
        [made[2], made[1]].map((each) => [each?.id, ['a', 'b', 'c']]),
      )
    })

    test('ids sort by their bytes', async () => {
      const ids = ['s_a', 's_B', 's_b', 's_A', 's_0', 's_Z', 's_z', 's_9', 's_aB', 's_Ab']
      await insert(...ids.map((id) => thing({ id, kind: 'sorted' })))
      const bytewise = ids.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))).reverse()
      const page = await store.read((reader) => reader.page({ kind: 'sorted', limit: 100 }))
      assert.deepEqual(
        page.map(({ id }) => id),
        bytewise,
      )
      for (const [i, beforeId] of bytewise.entries()) {
        const rest = await store.read((reader) => reader.page({ kind: 'sorted', beforeId, limit: 100 }))
        assert.deepEqual(
          rest.map(({ id }) => id),
          bytewise.slice(i + 1),
        )
      }
    })

    test('children of several parents are listed oldest first and are deleted with their parent', async () => {
      const [a, b, other] = [thing(), thing(), thing()]
      const children = [a, b, a, other].map((parent) => thing({ kind: 'child', parentId: parent.id }))
      await insert(a, b, other, ...children)
      const ids = async (...parents: NewResource[]) =>
        (
          await store.read((reader) =>
            reader.children(
              'child',
              parents.map(({ id }) => id),
            ),
          )
        ).map(({ id }) => id)
      const [first, second, third] = children.map(({ id }) => id)
      assert.deepEqual(await ids(b, a), [first, second, third])
      assert.deepEqual(await ids(), [])
      await store.write((writer) => writer.remove(a.id))
      assert.deepEqual(await ids(b, a), [second])
    })

    test('the resources of an owner can be listed, and are deleted with it', async () => {
      const owner = thing({ kind: 'user' })
      const [key, credential] = [thing({ kind: 'key', ownerId: owner.id }), thing({ ownerId: owner.id })]
      await insert(owner, key, credential)
      const owned = await store.read((reader) => reader.ownedBy(owner.id))
      assert.deepEqual(
        owned.map((each) => ({ ...each })).toSorted((x, y) => (x.id < y.id ? -1 : 1)),
        [key, credential].map(({ id, kind: of }) => ({ id, kind: of })),
      )
      await store.write((writer) => writer.remove(owner.id))
      assert.equal(await get(credential.id), undefined)
    })

    test('kinds are returned for the ids that exist', async () => {
      const [a, b] = await insert(thing(), thing({ kind: 'other' }))
      const kinds = await store.read((reader) => reader.kinds([a?.id ?? '', 't_none', b?.id ?? '']))
      assert.deepEqual(
        kinds,
        new Map([
          [a?.id, 'thing'],
          [b?.id, 'other'],
        ]),
      )
      assert.deepEqual(await store.read((reader) => reader.kinds([])), new Map())
    })

    test('fields are replaced as a whole, and only those of one resource', async () => {
      const [one, two] = await insert(thing({ fields: { a: 1, b: 2 } }), thing({ fields: { a: 1 } }))
      assert.ok(one && two)
      await store.write(async (writer) => {
        assert.deepEqual(await writer.lock('thing', one.id), stored(one))
        assert.equal(await writer.lock('other', one.id), undefined)
        assert.equal(await writer.lock('thing', 't_none'), undefined)
        await writer.replaceFields(one.id, { b: 3 })
      })
      assert.deepEqual(await get(one.id), stored({ ...one, fields: { b: 3 } }))
      assert.deepEqual(await get(two.id), stored(two))
    })

    test('a locked resource is written by one at a time, so no update is lost', async () => {
      const [one] = await insert(thing({ fields: { n: 0 } }))
      assert.ok(one)
      const add = () =>
        store.write(async (writer) => {
          const found = await writer.lock('thing', one.id)
          await writer.replaceFields(one.id, { n: Number(found?.fields.n) + 1 })
        })
      await Promise.all(Array.from({ length: 20 }, add))
      assert.deepEqual((await get(one.id))?.fields, { n: 20 })
    })

    test('a module is stored, replaced as a whole, removed, and deleted with its host', async () => {
      const [host] = await insert(thing())
      assert.ok(host)
      const put = (name: string, config: object) =>
        store.write((writer) => writer.putModule(host.id, name, { ...config }))
      await put('a', { x: 1, y: 2 })
      await put('b', {})
      await put('a', { y: 3 })
      const all: [string, object][] = [
        ['a', { y: 3 }],
        ['b', {}],
      ]
      assert.deepEqual(await get(host.id), stored(host, all))
      await store.write((writer) => writer.removeModule(host.id, 'a'))
      await store.write((writer) => writer.removeModule(host.id, 'never'))
      assert.deepEqual(await get(host.id), stored(host, all.slice(1)))
      await store.write((writer) => writer.remove(host.id))
      await insert(host)
      assert.deepEqual(await get(host.id), stored(host))
      await assert.rejects(
        store.write((writer) => writer.putModule('t_none', 'a', {})),
        isConflict('dangling'),
      )
    })

    test('references are listed oldest referrer first, replaced as a whole, and protect their target', async () => {
      const [target, one, two] = await insert(thing(), thing(), thing({ kind: 'other' }))
      assert.ok(target && one && two)
      const set = (from: NewResource, slot: string, to: string[], isNew = false) =>
        store.write((writer) => writer.setReferences(from.id, slot, to, isNew))
      const referrers = async (limit = 10) =>
        (await store.read((reader) => reader.referrers(target.id, limit))).map((each) => ({ ...each }))
      const remove = () => store.write((writer) => writer.remove(target.id))
      await set(two, 'backend', [target.id, target.id], true)
      await set(one, 'ip_restriction', [target.id], true)
      const first = { id: one.id, kind: 'thing', slot: 'ip_restriction' }
      assert.deepEqual(await referrers(), [first, { id: two.id, kind: 'other', slot: 'backend' }])
      assert.deepEqual(await referrers(1), [first])
      await assert.rejects(remove(), isConflict('dangling'))
      await set(two, 'backend', [])
      await set(two, 'another slot', [])
      assert.deepEqual(await referrers(), [first])
      await store.write((writer) => writer.remove(one.id))
      await remove()
      await assert.rejects(set(two, 'backend', [target.id], true), isConflict('dangling'))
    })

    test('a claim has one holder in its scope, and is released with it', async () => {
      const [owner, one, two] = [thing({ kind: 'user' }), thing(), thing()]
      await insert(owner, { ...one, ownerId: owner.id }, two)
      const set = (holder: NewResource, scope: string, keys: string[], isNew = false) =>
        store.write((writer) => writer.setClaims(holder.id, scope, keys, isNew))
      const holder = (scope: string, key: string) => store.read((reader) => reader.holder(scope, key))
      const opened = (key: string) => store.read((reader) => reader.holdersWithOwners('names', [key]))
      await set(one, 'names', ['x', 'y'], true)
      await set(two, 'others', ['x'], true)
      assert.deepEqual([await holder('names', 'x'), await holder('others', 'x')], [one.id, two.id])
      assert.equal(await holder('names', 'X'), undefined)
      const both = { held: stored({ ...one, ownerId: owner.id }), owner: stored(owner) }
      assert.deepEqual(await opened('x'), [{ key: 'x', ...both }])
      assert.deepEqual(await store.read((reader) => reader.holdersWithOwners('names', ['x', 'none'])), [
        { key: 'x', ...both },
      ])
      assert.deepEqual(await store.read((reader) => reader.holdersWithOwners('others', ['x'])), [])
      assert.deepEqual(await store.read((reader) => reader.withOwners([one.id, two.id, 'none'])), [both])
      await assert.rejects(set(two, 'names', ['z', 'y']), isConflict('taken'))
      assert.equal(await holder('names', 'z'), undefined)
      await set(one, 'names', ['x', 'z'])
      assert.deepEqual([await holder('names', 'y'), await holder('names', 'z')], [undefined, one.id])
      await set(two, 'names', ['y'])
      assert.deepEqual(await opened('y'), [], 'its holder has no owner')
      await store.write((writer) => writer.remove(owner.id))
      assert.deepEqual(await opened('x'), [])
      await set(two, 'names', ['x', 'y'])
    })

    test('facts are set, changed and, on request, kept as they were', async () => {
      const meta = () => store.read((reader) => reader.meta('fact'))
      assert.equal(await meta(), undefined)
      assert.equal(await store.write((writer) => writer.keepMeta('fact', 'one')), 'one')
      assert.equal(await store.write((writer) => writer.keepMeta('fact', 'two')), 'one')
      assert.equal(await meta(), 'one')
      await store.write((writer) => writer.setMeta('fact', 'three'))
      assert.equal(await meta(), 'three')
    })

    test('many concurrent calls that set a fact all get the same value', async () => {
      const keep = (_: unknown, i: number) => store.write((writer) => writer.keepMeta('contested', String(i)))
      const reported = await Promise.all(Array.from({ length: 20 }, keep))
      assert.equal(new Set(reported).size, 1)
      assert.equal(await store.read((reader) => reader.meta('contested')), reported[0])
    })

    test('a transaction that throws stores nothing, and nothing of it is ever visible', async () => {
      const [host, extra] = [thing(), thing()]
      await insert(host)
      const revision = await store.feed.latest()
      let seen: Promise<unknown> | undefined
      const failed = store.write(async (writer) => {
        await writer.insert(extra)
        await writer.replaceFields(host.id, { changed: true })
        await writer.putModule(host.id, 'a', {})
        await writer.setReferences(extra.id, 'slot', [host.id], true)
        await writer.setClaims(extra.id, 'thrown', ['x'], true)
        await writer.setMeta('thrown', 'yes')
        writer.changed('thing', extra.id)
        seen = get(extra.id)
        throw new Error('given up')
      })
      await assert.rejects(failed, { message: 'given up' })
      assert.equal(await seen, undefined)
      assert.deepEqual([await get(extra.id), await get(host.id)], [undefined, stored(host)])
      assert.deepEqual(await store.read((reader) => reader.referrers(host.id, 1)), [])
      assert.equal(await store.read((reader) => reader.holder('thrown', 'x')), undefined)
      assert.equal(await store.read((reader) => reader.meta('thrown')), undefined)
      assert.deepEqual(await store.feed.since(revision), [])
    })

    test('of many concurrent claims of one name, exactly one succeeds', async () => {
      const makers = Array.from({ length: 20 }, () => thing())
      const revision = await store.feed.latest()
      const outcomes = await Promise.allSettled(
        makers.map((maker) =>
          store.write(async (writer) => {
            await writer.insert(maker)
            await writer.setClaims(maker.id, 'contested', ['the name'], true)
            writer.changed('thing', maker.id)
          }),
        ),
      )
      const lost = outcomes.filter((outcome) => outcome.status === 'rejected')
      assert.equal(lost.length, 19)
      for (const { reason } of lost) assert.ok(isConflict('taken')(reason), String(reason))
      const winner = makers[outcomes.findIndex(({ status }) => status === 'fulfilled')]?.id
      assert.equal(await store.read((reader) => reader.holder('contested', 'the name')), winner)
      const kinds = await store.read((reader) => reader.kinds(makers.map(({ id }) => id)))
      assert.deepEqual([...kinds.keys()], [winner])
      assert.deepEqual(
        (await store.feed.since(revision))?.map(({ id }) => id),
        [winner],
      )
    })

    test('deleting a target while a reference to it is written never leaves a dangling reference', async () => {
      for (let round = 0; round < 20; round++) {
        const [target, from] = [thing(), thing()]
        await insert(target)
        const removing = () => store.write((writer) => writer.remove(target.id))
        const referring = () =>
          store.write(async (writer) => {
            await writer.insert(from)
            await writer.setReferences(from.id, 'slot', [target.id], true)
          })
        const starts = round % 2 ? [removing, referring] : [referring, removing]
        const outcomes = await Promise.allSettled(starts.map((start) => start()))
        const lost = outcomes.filter((outcome) => outcome.status === 'rejected')
        assert.equal(lost.length, 1, 'one of the two writes is refused')
        assert.ok(isConflict('dangling')(lost[0]?.reason), String(lost[0]?.reason))
        assert.equal((await get(target.id)) === undefined, (await get(from.id)) === undefined)
      }
    })

    test('everything is still there after closing and opening again', async () => {
      const [one] = await insert(thing())
      assert.ok(one)
      await store.write((writer) => writer.putModule(one.id, 'a', { kept: true }))
      await store.close()
      store = await openStore(url)
      assert.deepEqual(await get(one.id), stored(one, [['a', { kept: true }]]))
    })
  })
})

test('a database of another kind is refused', async () => {
  await assert.rejects(openStore('mysql://localhost/x'), /starts with `sqlite:` or `postgres:\/\/`/)
})
