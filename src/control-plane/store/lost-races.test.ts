/** A transaction that loses its race to others is repeated, and in the end refused as a conflict, not as an outage. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { Kysely } from 'kysely'
import { Refusal } from '../../model/errors.ts'
import { storeLimits } from './limits.ts'
import { openSqlite } from './sqlite.ts'
import { openStore, Store, StoreAway } from './store.ts'
import type { Tables } from './tables.ts'

class LostRace extends Error {}

/** A store whose database classifies `LostRace` as PostgreSQL does a deadlock. */
async function open(t: TestContext): Promise<Store> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-races-'))
  const path = join(folder, 'test.db')
  await (await openStore(`sqlite:${path}`)).close()
  const opened = await openSqlite(path, storeLimits)
  const { classify } = opened.facts
  const facts = {
    ...opened.facts,
    classify: (error: unknown) => (error instanceof LostRace ? 'again' : classify(error)),
  }
  const store = new Store(new Kysely<Tables>({ dialect: opened.dialect }), { ...opened, facts })
  t.after(async () => {
    await store.close()
    await rm(folder, { recursive: true })
  })
  return store
}

test('a transaction that loses a few races is stored once', async (t) => {
  const store = await open(t)
  let tries = 0
  await store.write(async (writer) => {
    await writer.setMeta('tries', String(++tries))
    if (tries < 5) throw new LostRace()
  })
  assert.equal(await store.read((reader) => reader.meta('tries')), '5')
})

test('a transaction that loses them all is a conflict that says to try again, and stores nothing', async (t) => {
  const store = await open(t)
  let tries = 0
  const lost = store.write(async (writer) => {
    await writer.setMeta('tries', String(++tries))
    throw new LostRace()
  })
  await assert.rejects(lost, (error) => {
    assert.ok(error instanceof Refusal && !(error instanceof StoreAway))
    assert.deepEqual([error.code, error.headers['retry-after'], tries], ['CONFLICT', '1', 5])
    assert.match(error.message, /try again/)
    assert.ok(error.cause instanceof LostRace)
    return true
  })
  assert.equal(await store.read((reader) => reader.meta('tries')), undefined)
})
