/** The SQLite thread: foreign locks, overdue statements, and a thread that ends. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, describe, type TestContext, test } from 'node:test'
import { Kysely, sql } from 'kysely'
import { until } from '../../../test/support/until.ts'
import { Overdue, storeLimits } from './limits.ts'
import { openSqlite } from './sqlite.ts'
import { SqliteConnection, ThreadGone } from './sqlite-connection.ts'
import { sqliteThreadDriver } from './sqlite-driver.ts'
import { SqliteTurns } from './sqlite-turns.ts'
import { openStore, type Store, StoreAway } from './store.ts'

const root = mkdtempSync(join(tmpdir(), 'postern-thread-'))
after(() => rmSync(root, { recursive: true, force: true }))
const newFile = () => join(mkdtempSync(join(root, 'folder-')), 'postern.db')

const limits = { ...storeLimits, connectionMs: 200, statementMs: 300 }

/** A statement that takes longer than any limit here, and then ends. */
const SLOW = sql<{ n: number }>`with recursive c(x) as (select 1 union all select x + 1 from c where x < 6000000)
  select max(x) as n from c`

describe('while another process holds the lock', () => {
  const set = (store: Store, value: string) => store.write((writer) => writer.setMeta('key', value))
  const get = (store: Store) => store.read((reader) => reader.meta('key'))

  test('reads go on while a write waits, the write is refused in time, and the next write is stored', async (t) => {
    const file = newFile()
    const store = await openStore(`sqlite:${file}`, { limits })
    t.after(() => store.close())
    await set(store, 'before')
    const foreign = new DatabaseSync(file)
    foreign.exec('begin exclusive')
    const writes = [set(store, 'a'), set(store, 'b'), set(store, 'c')]
    let isRefused = false
    const refused = Promise.all(writes.map((write) => assert.rejects(write, StoreAway))).then(() => {
      isRefused = true
    })
    for (let reads = 0; !isRefused; reads++) {
      assert.equal(await get(store), 'before')
      assert.ok(reads < 1e6)
    }
    await refused
    foreign.exec('rollback')
    foreign.close()
    await set(store, 'after')
    assert.equal(await get(store), 'after')
  })

  test('a write is stored if the lock is released in time', async (t) => {
    const file = newFile()
    const store = await openStore(`sqlite:${file}`)
    t.after(() => store.close())
    const foreign = new DatabaseSync(file)
    foreign.exec('begin exclusive')
    const write = set(store, 'waited')
    for (let i = 0; i < 50; i++) await get(store)
    foreign.exec('rollback')
    foreign.close()
    await write
    assert.equal(await get(store), 'waited')
  })
})

describe('a statement that takes too long', () => {
  async function opened(t: TestContext, within = limits) {
    const { dialect, close, facts } = await openSqlite(newFile(), within)
    t.after(close)
    const db = new Kysely<{ t: { id: number } }>({ dialect })
    await sql`create table t (id integer)`.execute(db)
    return { db, facts }
  }
  const count = async (db: Kysely<{ t: { id: number } }>) => (await db.selectFrom('t').selectAll().execute()).length
  const back = (db: Kysely<{ t: { id: number } }>) =>
    until('it answers again', () =>
      count(db).then(
        () => true,
        (error: unknown) => {
          assert.ok(error instanceof Overdue, String(error))
          return false
        },
      ),
    )

  test('is given up, and so are those that wait behind it, without blocking the event loop', async (t) => {
    const { db } = await opened(t)
    let turns = 0
    const turning = setInterval(() => turns++, 1)
    const all = [SLOW.execute(db), count(db), db.transaction().execute(async () => {})]
    for (const each of all) await assert.rejects(each, Overdue)
    clearInterval(turning)
    assert.ok(turns > 10, 'the loop turned meanwhile')
    await back(db)
  })

  test('stores nothing of its transaction', async (t) => {
    const { db } = await opened(t)
    const half = db.transaction().execute(async (tx) => {
      await tx.insertInto('t').values({ id: 1 }).execute()
      await assert.rejects(SLOW.execute(tx), Overdue)
      // Further statements of the transaction fail with the same error.
      await tx.insertInto('t').values({ id: 2 }).execute()
    })
    await assert.rejects(half, Overdue)
    await back(db)
    assert.equal(await count(db), 0)
    await db.transaction().execute((tx) => tx.insertInto('t').values({ id: 3 }).execute())
    assert.equal(await count(db), 1)
  })

  test('transactions queue, and each sees the one before', async (t) => {
    // Generous limits for a busy machine: nothing may be overdue here.
    const { db } = await opened(t, storeLimits)
    const seen = await Promise.all(
      Array.from({ length: 20 }, () =>
        db.transaction().execute(async (tx) => {
          const before = (await tx.selectFrom('t').selectAll().execute()).length
          await tx.insertInto('t').values({ id: before }).execute()
          return before
        }),
      ),
    )
    assert.deepEqual(seen, [...seen.keys()])
  })
})

test('a commit that is confirmed late is announced, because its writer had given up', async () => {
  const commit = Promise.withResolvers<{ columns: []; rows: []; changes: number }>()
  const nothing = Promise.resolve({ columns: [] as [], rows: [] as [], changes: 0 })
  const asked: string[] = []
  const announced = Promise.withResolvers<void>()
  const connection = {
    thread: {},
    run(statement: string) {
      asked.push(statement)
      return statement === 'commit' ? commit.promise : nothing
    },
    announce: () => announced.resolve(),
    abandon: () => assert.fail('the thread is well'),
  }
  const turns = new SqliteTurns()
  const driver = sqliteThreadDriver({ connection: connection as unknown as SqliteConnection, turns, limits })
  const lease = await driver.acquireConnection()
  await driver.beginTransaction(lease, {})
  await assert.rejects(driver.commitTransaction(lease), Overdue)
  await driver.rollbackTransaction(lease)
  await assert.rejects(turns.take(1), Overdue, 'no other transaction comes between')
  commit.resolve({ columns: [], rows: [], changes: 0 })
  await announced.promise
  assert.deepEqual(asked, ['begin', 'commit', 'rollback'])
  await turns.take(1)
})

describe('a thread that ends', () => {
  test('fails its open statements, and another takes over with all that was committed', async (t) => {
    const connection = await SqliteConnection.open({ path: newFile(), openMs: 1000 })
    t.after(() => connection.close(1000))
    let heard = 0
    connection.listen(() => heard++)
    await connection.run('create table t (id integer)', [])
    await connection.run('insert into t values (1)', [])
    const { thread } = connection
    await connection.run('begin', [], thread)
    await connection.run('insert into t values (2)', [], thread)
    connection.abandon(thread)
    await assert.rejects(connection.run('select * from t', [], thread), ThreadGone)
    const { rows } = await until('another takes over', () => connection.run('select id from t', []).catch(() => false))
    assert.deepEqual(rows, [[1]])
    await assert.rejects(connection.run('commit', [], thread), ThreadGone, 'its transaction ended with it')
    assert.ok(heard > 0, 'something may have been missed')
  })

  test('is not replaced by one with an empty database when the file is gone', async (t) => {
    const path = newFile()
    const connection = await SqliteConnection.open({ path, openMs: 1000 })
    t.after(() => connection.close(1000))
    const { thread } = connection
    rmSync(path)
    connection.abandon(thread)
    await until('it ended', () => connection.thread === null)
    await until('the next was tried', () => connection.thread !== null)
    await until('the next ended too', () => connection.thread === null)
    await assert.rejects(connection.run('select 1', []), ThreadGone)
  })
})

describe('opening', () => {
  test('names the file and keeps the code of SQLite', async () => {
    const path = newFile()
    writeFileSync(
      path,
      'no database at all, but long enough to be taken for the head of one, had it the right words '.repeat(9),
    )
    await assert.rejects(openStore(`sqlite:${path}`), (error: Error & { errcode?: number; code?: string }) => {
      assert.ok(error.message.includes(path))
      assert.deepEqual([error.code, error.errcode], ['ERR_SQLITE_ERROR', 26])
      return true
    })
  })

  test('keeps the error of the file system', async () => {
    const path = join(newFile(), 'postern.db')
    writeFileSync(join(path, '..'), '')
    await assert.rejects(openStore(`sqlite:${path}`), { code: 'EEXIST', syscall: 'mkdir', path: join(path, '..') })
  })

  test('a folder that cannot be made is refused, and not retried for ever', async () => {
    await assert.rejects(openStore('sqlite:/proc/none/deeper/postern.db'), { code: 'ENOENT', syscall: 'mkdir' })
  })
})
