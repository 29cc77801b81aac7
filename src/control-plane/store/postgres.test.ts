/** PostgreSQL as the store of several nodes: they hear of each other's changes, and survive its outages. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { Client } from 'pg'
import { type Postgres, startPostgres } from '../../../test/support/postgres.ts'
import { openGate } from '../../../test/support/tcp-gate.ts'
import { openStore, type Store, StoreAway } from './store.ts'

describe('PostgreSQL', () => {
  let postgres: Postgres
  before(async () => {
    postgres = await startPostgres()
  })
  after(() => postgres.stop())

  const insert = (store: Store, id: string) =>
    store.write(async (writer) => {
      await writer.insert({ id, kind: 'thing', parentId: null, ownerId: null, createdAt: '', fields: {} })
      writer.changed('thing', id)
    })
  const ids = async (store: Store) =>
    (await store.read((reader) => reader.page({ kind: 'thing', limit: 1000 }))).map(({ id }) => id).reverse()

  test('ids sort by their bytes even when the database sorts by language', async () => {
    const store = await openStore(await postgres.createDatabase({ collation: 'language' }))
    const made = ['s_b', 's_A', 's_a', 's_B', 's_9', 's_Z', 's_z', 's_aB', 's_Ab']
    for (const id of made) await insert(store, id)
    const sorted = made.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
    assert.deepEqual(await ids(store), sorted)
    const old = await store.read((reader) => reader.page({ kind: 'thing', beforeId: 's_Z', limit: 100 }))
    assert.deepEqual(old.map(({ id }) => id).reverse(), sorted.slice(0, sorted.indexOf('s_Z')))
    await store.close()
  })

  test('nodes that open one empty database at once migrate it once', async () => {
    const url = await postgres.createDatabase()
    const stores = await Promise.all(Array.from({ length: 5 }, () => openStore(url)))
    const migrations = await ask(url, 'select name from kysely_migration order by name')
    assert.deepEqual(
      migrations.map(({ name }) => name),
      ['0001_resources', '0002_logins', '0003_used_answers', '0004_online', '0005_certificates'],
    )
    for (const [i, store] of stores.entries()) await insert(store, `t_${i}`)
    for (const store of stores) assert.equal((await ids(store)).length, 5)
    await Promise.all(stores.map((store) => store.close()))
  })

  test('a database that a newer version migrated is refused with an explanation', async () => {
    const url = await postgres.createDatabase()
    await (await openStore(url)).close()
    await ask(url, `insert into kysely_migration (name, timestamp) values ('9999_future', '')`)
    await assert.rejects(openStore(url), /newer version of Postern.* 9999_future/)
    await ask(url, `delete from kysely_migration where name in ('9999_future', '0001_resources')`)
    await assert.rejects(openStore(url), /^Error: the migrations of this database ran in another order/)
  })

  test('a node hears of the writes of another, even after its listening connection was killed', async (t) => {
    // Without the slow poll, so that only notifications can wake it.
    t.mock.timers.enable({ apis: ['setInterval'] })
    const url = await postgres.createDatabase()
    const [listening, writing] = [await openStore(url), await openStore(url)]
    const heard = () => new Promise<void>((resolve) => listening.feed.subscribe(resolve))
    const LISTENERS = `from pg_stat_activity where query = 'listen postern_changes' and datname = current_database()`

    const first = heard()
    await insert(writing, 't_1')
    await first

    const [killed] = await ask(url, `select count(pg_terminate_backend(pid))::int as count ${LISTENERS}`)
    assert.equal(killed?.count, 2)
    const second = heard()
    await insert(writing, 't_2')
    await second
    const changes = await listening.feed.since(0)
    assert.deepEqual(
      changes?.map(({ id }) => id),
      ['t_1', 't_2'],
    )

    const again = async () => (await ask(url, `select count(*)::int as count ${LISTENERS}`))[0]?.count === 2
    while (!(await again())) await delay(20)
    const third = heard()
    await insert(writing, 't_3')
    await third
    assert.ok(await again(), 'each node listens once')
    await Promise.all([listening.close(), writing.close()])
  })

  test('while it is unavailable reads and writes are refused as such, and work again once it is back', async () => {
    const url = new URL(await postgres.createDatabase())
    const gate = await openGate(Number(url.port))
    url.port = String(gate.port)
    const store = await openStore(url.href)
    await insert(store, 't_1')
    for (const round of [2, 3]) {
      await gate.shut()
      for (let i = 0; i < 12; i++) {
        await assert.rejects(insert(store, 't_lost'), StoreAway)
        await assert.rejects(ids(store), StoreAway)
      }
      await assert.rejects(store.feed.latest(), StoreAway)
      await assert.rejects(store.feed.since(0), StoreAway)
      await gate.open()
      await insert(store, `t_${round}`)
    }
    assert.deepEqual(await ids(store), ['t_1', 't_2', 't_3'])
    await store.close()
    await gate.shut()
  })

  test('a connection lost during a transaction fails only that transaction, and nothing of it is stored', async () => {
    const url = new URL(await postgres.createDatabase())
    const gate = await openGate(Number(url.port))
    url.port = String(gate.port)
    const store = await openStore(url.href)
    const broken = store.write(async (writer) => {
      await writer.setMeta('half', 'done')
      await gate.shut()
      await gate.open()
      await writer.setMeta('half', 'more')
    })
    await assert.rejects(broken, StoreAway)
    assert.equal(await store.read((reader) => reader.meta('half')), undefined)
    await store.close()
    await gate.shut()
  })

  test('a database that does not exist is refused, and nothing keeps the process alive', async () => {
    const url = await postgres.createDatabase()
    await assert.rejects(openStore(`${url}_absent`), (error: Error) => /does not exist/.test(String(error.cause)))
  })

  test('two transactions that lock the same rows in opposite order both succeed', async (t) => {
    const store = await openStore(await postgres.createDatabase())
    t.after(() => store.close())
    await insert(store, 't_a')
    await insert(store, 't_b')
    const both = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    let runs = 0
    const lockAll = (mine: number, [first, second]: readonly [string, string]) =>
      store.write(async (writer) => {
        runs++
        await writer.lock('thing', first)
        both[mine]?.resolve()
        await both[1 - mine]?.promise
        await writer.lock('thing', second)
        await writer.replaceFields(second, { by: mine })
      })
    await Promise.all([lockAll(0, ['t_a', 't_b']), lockAll(1, ['t_b', 't_a'])])
    // The transaction that is repeated may be faster than the waiting one, and deadlock with it again.
    assert.ok(runs > 2, 'one of them was run again')
  })
})

async function ask(url: string, query: string): Promise<Record<string, unknown>[]> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query(query)).rows
  } finally {
    await client.end()
  }
}
