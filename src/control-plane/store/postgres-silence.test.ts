/** PostgreSQL that falls silent: its port is open and it answers nothing. */
import assert from 'node:assert/strict'
import { after, before, describe, type TestContext, test } from 'node:test'
import { Client } from 'pg'
import { type Postgres, startPostgres } from '../../../test/support/postgres.ts'
import { openGate } from '../../../test/support/tcp-gate.ts'
import { until } from '../../../test/support/until.ts'
import { storeLimits } from './limits.ts'
import { openStore, type Store, StoreAway } from './store.ts'

/** Short, to keep the tests short, but long enough for a busy machine. */
const limits = { ...storeLimits, connectionMs: 1000, statementMs: 1500, pollMs: 200 }

describe('PostgreSQL that is silent', () => {
  let postgres: Postgres
  before(async () => {
    postgres = await startPostgres()
  })
  after(() => postgres.stop())

  /** A store whose database can fall silent, and the database itself. */
  async function silenceable(t: TestContext) {
    const direct = await postgres.createDatabase()
    const url = new URL(direct)
    const gate = await openGate(Number(url.port))
    url.port = String(gate.port)
    const store = await openStore(url.href, { limits })
    t.after(async () => {
      gate.speak()
      await store.close()
      await gate.shut()
    })
    return { direct, gate, store }
  }

  const insert = (store: Store, id: string) =>
    store.write(async (writer) => {
      await writer.insert({ id, kind: 'thing', parentId: null, ownerId: null, createdAt: '', fields: {} })
      writer.changed('thing', id)
    })
  const ids = async (store: Store) =>
    (await store.read((reader) => reader.page({ kind: 'thing', limit: 1000 }))).map(({ id }) => id).reverse()
  /** Writes until the store works again; the first tries may use connections that are being closed. */
  const insertWhenBack = (store: Store, id: string) =>
    until('a write is stored again', () =>
      insert(store, id).then(
        () => true,
        (error: unknown) => {
          assert.ok(error instanceof StoreAway, String(error))
          return false
        },
      ),
    )

  test('reads and writes are refused in time, even more than there are connections, and recover by themselves', async (t) => {
    const { gate, store } = await silenceable(t)
    await insert(store, 't_1')
    for (const round of [2, 3]) {
      gate.hush()
      const asked = Array.from({ length: 30 }, (_, i) => (i % 2 ? ids(store) : insert(store, `t_lost_${round}_${i}`)))
      await Promise.all(asked.map((answer) => assert.rejects(answer, StoreAway)))
      await assert.rejects(store.feed.latest(), StoreAway)
      assert.equal(await store.answers(50), false)
      gate.speak()
      await insertWhenBack(store, `t_${round}`)
    }
    assert.deepEqual(await ids(store), ['t_1', 't_2', 't_3'], 'nothing refused was stored')
    assert.equal(await store.answers(10_000), true)
  })

  test('the connection of an overdue statement is closed, so its late answer does not reach another query', async (t) => {
    const { gate, store } = await silenceable(t)
    await store.write((writer) => writer.setMeta('mine', 'a'))
    gate.hush('answers')
    await assert.rejects(
      store.read((reader) => reader.meta('mine')),
      StoreAway,
    )
    gate.speak()
    for (let i = 0; i < 20; i++) assert.equal(await store.read((reader) => reader.meta(`none_${i}`)), undefined)
  })

  test('an unconfirmed write is not repeated, and its error says that it may be stored', async (t) => {
    const { gate, store } = await silenceable(t)
    let runs = 0
    const unconfirmed = store.write(async (writer) => {
      runs++
      await writer.insert({ id: 't_1', kind: 'thing', parentId: null, ownerId: null, createdAt: '', fields: {} })
      gate.hush('answers')
    })
    await assert.rejects(
      unconfirmed,
      (error) => error instanceof StoreAway && /may be stored or not/.test(error.message),
    )
    assert.equal(runs, 1)
    gate.speak()
    await until('the database is back', () => store.answers(1000))
    assert.deepEqual(await ids(store), ['t_1'])
  })

  test('a node that falls silent in a transaction does not keep its locks', async (t) => {
    const { direct, gate, store } = await silenceable(t)
    const other = await openStore(direct)
    t.after(() => other.close())
    await insert(store, 't_1')
    const locked = store.write(async (writer) => {
      await writer.lock('thing', 't_1')
      gate.hush()
      await writer.replaceFields('t_1', { by: 'silent' })
    })
    await assert.rejects(locked, StoreAway)
    await until('the lock is gone', () =>
      other
        .write(async (writer) => {
          await writer.lock('thing', 't_1')
          await writer.replaceFields('t_1', { by: 'other' })
        })
        .then(
          () => true,
          () => false,
        ),
    )
  })

  test('a listening connection that fell silent is replaced', async (t) => {
    const { direct, gate } = await silenceable(t)
    const listeners = async () =>
      (await ask(
        direct,
        `select pid from pg_stat_activity where query in ('listen postern_changes', 'select 1')
         and datname = current_database()`,
      )) as { pid: number }[]
    const [first] = await until('it listens', async () => {
      const found = await listeners()
      return found.length === 1 && found
    })
    // The database still receives, so that it notices the end of the connection.
    gate.hush('answers')
    await until(
      'the silent connection is given up',
      async () => !(await listeners()).some(({ pid }) => pid === first?.pid),
    )
    gate.speak()
    await until('it listens again', async () => (await listeners()).length === 1)
  })

  test('stopping does not wait for it', async (t) => {
    const { direct, gate } = await silenceable(t)
    const url = new URL(direct)
    url.port = String(gate.port)
    const store = await openStore(url.href, { limits })
    await insert(store, 't_1')
    gate.hush()
    await store.close()
  })

  test('a start fails with the error that the database does not answer', async (t) => {
    const { direct, gate } = await silenceable(t)
    const url = new URL(direct)
    url.port = String(gate.port)
    gate.hush()
    await assert.rejects(openStore(url.href, { limits }), (error: Error) => {
      assert.equal((error.cause as { code?: string }).code, 'ETIMEDOUT', String(error.cause))
      return true
    })
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
