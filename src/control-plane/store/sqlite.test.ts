/** SQLite is set up to lose nothing, and reports a full disk. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, test } from 'node:test'
import { promisify } from 'node:util'
import { Kysely, sql } from 'kysely'
import { migrate } from './migrations.ts'
import { Reader } from './reader.ts'
import { openSqlite } from './sqlite.ts'
import { openStore, type Store, StoreAway } from './store.ts'
import type { Tables } from './tables.ts'

const run = promisify(execFile)
const root = mkdtempSync(join(tmpdir(), 'postern-sqlite-'))
after(() => rmSync(root, { recursive: true, force: true }))
const newFolder = () => mkdtempSync(join(root, 'folder-'))

test('commits reach the disk before they are acknowledged, and foreign keys hold', async () => {
  const opened = await openSqlite(join(newFolder(), 'new', 'postern.db'))
  const db = new Kysely<Tables>({ dialect: opened.dialect })
  const pragma = async (name: string) => Object.values((await sql.raw(`pragma ${name}`).execute(db)).rows[0] ?? {})[0]
  const FULL = 2
  assert.deepEqual(
    [await pragma('journal_mode'), await pragma('synchronous'), await pragma('foreign_keys')],
    ['wal', FULL, 1],
  )
  assert.equal(await pragma('busy_timeout'), 0, 'the caller waits, not the thread')
  await opened.close()
})

test('only its owner can read the database and its folder', async () => {
  const folder = join(newFolder(), 'data')
  const store = await openStore(`sqlite:${join(folder, 'postern.db')}`)
  await store.write((writer) => writer.setMeta('a', 'b'))
  assert.equal(statSync(folder).mode & 0o777, 0o700)
  for (const file of ['postern.db', 'postern.db-wal', 'postern.db-shm']) {
    assert.equal(statSync(join(folder, file)).mode & 0o777, 0o600, file)
  }
  await store.close()
})

test('an interrupted migration leaves nothing behind, and the next start completes it', async () => {
  const opened = await openSqlite(join(newFolder(), 'postern.db'))
  const db = new Kysely<Tables>({ dialect: opened.dialect })
  // Makes the last table of the migration fail, as if the process were killed before it.
  await sql`create table meta (key text)`.execute(db)
  await assert.rejects(migrate(db, opened.facts), /migrate the database/)
  await sql`drop table meta`.execute(db)
  await migrate(db, opened.facts)
  assert.deepEqual(await db.selectFrom('resources').selectAll().execute(), [])
  await opened.close()
})

test('a database that a newer version migrated is refused with an explanation', async () => {
  const file = join(newFolder(), 'postern.db')
  await (await openStore(`sqlite:${file}`)).close()
  const db = new DatabaseSync(file)
  db.exec(`insert into kysely_migration (name, timestamp) values ('9999_future', '')`)
  db.close()
  await assert.rejects(openStore(`sqlite:${file}`), /newer version of Postern.* 9999_future/)
})

test('a database whose migrations ran in another order is refused with an explanation', async () => {
  const file = join(newFolder(), 'postern.db')
  await (await openStore(`sqlite:${file}`)).close()
  const db = new DatabaseSync(file)
  db.exec(`delete from kysely_migration where name = '0001_resources'`)
  db.close()
  await assert.rejects(openStore(`sqlite:${file}`), /^Error: the migrations of this database ran in another order/)
})

test('children of many parents are looked up by their parents, not among all of their kind', async () => {
  const file = join(newFolder(), 'postern.db')
  await (await openStore(`sqlite:${file}`)).close()
  const opened = await openSqlite(file)
  const asked: string[] = []
  const reader = new Reader(
    new Kysely<Tables>({ dialect: opened.dialect, log: ({ query }) => void asked.push(query.sql) }),
    opened.facts,
  )
  await reader.children(
    'child',
    Array.from({ length: 100 }, (_, i) => `p_${i}`),
  )
  await opened.close()
  const db = new DatabaseSync(file)
  const plan = db.prepare(`explain query plan ${asked[0]}`).all(...Array(100).fill('x'))
  db.close()
  const [first] = plan.map(({ detail }) => String(detail))
  assert.match(first ?? '', /resources_by_parent \(parent_id=\?\)/)
})

test('on a full disk writes fail, acknowledged ones stay, and everything works again once there is room', async (t) => {
  const disk = newFolder()
  try {
    await run('mount', ['-t', 'tmpfs', '-o', 'size=768k', 'tmpfs', disk])
  } catch {
    t.skip('needs the right to mount a small disk')
    return
  }
  const url = `sqlite:${join(disk, 'postern.db')}`
  let store: Store | undefined
  try {
    store = await openStore(url)
    const kept = await fill(store)
    assert.ok(kept.length > 5, 'some were stored before the disk was full')
    assert.deepEqual(await listed(store), kept, 'reads go on')
    await run('mount', ['-o', 'remount,size=8m', disk])
    await insert(store, 'z_after')
    await store.close()
    store = await openStore(url)
    assert.deepEqual(await listed(store), [...kept, 'z_after'])
  } finally {
    await store?.close()
    await run('umount', [disk])
  }
})

/** Inserts until the disk is full; resolves with the acknowledged ids. */
async function fill(store: Store): Promise<string[]> {
  const ids: string[] = []
  for (let refusals = 0; refusals < 3; ) {
    const id = `t_${String(ids.length + refusals).padStart(4, '0')}`
    try {
      await insert(store, id)
      ids.push(id)
    } catch (error) {
      assert.ok(error instanceof StoreAway, String(error))
      assert.match(String(error.cause), /full/, 'the cause names the disk')
      refusals++
    }
  }
  return ids
}

async function insert(store: Store, id: string): Promise<void> {
  await store.write(async (writer) => {
    const fields = { text: 'x'.repeat(3000) }
    await writer.insert({ id, kind: 'thing', parentId: null, ownerId: null, createdAt: '', fields })
    writer.changed('thing', id)
  })
}

async function listed(store: Store): Promise<string[]> {
  const page = await store.read((reader) => reader.page({ kind: 'thing', limit: 10_000 }))
  return page.map(({ id }) => id).reverse()
}
