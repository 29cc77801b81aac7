/** A reader of the change feed misses nothing and sees all changes in order. */
import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { after, before, describe, test } from 'node:test'
import { setImmediate as tick } from 'node:timers/promises'
import { Client } from 'pg'
import { eachStore } from '../../../test/support/databases.ts'
import { type Change, KEPT_CHANGES } from './feed.ts'
import { openStore, type Store } from './store.ts'

describe('the feed', () => {
  eachStore((kind) => {
    let url: string
    let store: Store
    before(async () => {
      url = await kind.url()
      store = await openStore(url)
    })
    after(() => store.close())

    const note = (...ids: string[]) =>
      store.write(async (writer) => {
        for (const id of ids) writer.changed('thing', id)
      })

    test('is empty at first', async () => {
      assert.equal(await store.feed.latest(), 0)
      assert.deepEqual(await store.feed.since(0), [])
    })

    test('lists what changed after a revision, each resource once a transaction, up to a limit', async () => {
      await note('a', 'b', 'a')
      await note('c')
      const all = await store.feed.since(0)
      assert.deepEqual(all?.map(({ id }) => id).sort(), ['a', 'b', 'c'])
      assert.deepEqual({ ...all?.at(-1) }, { revision: await store.feed.latest(), kind: 'thing', id: 'c' })
      assert.deepEqual(await store.feed.since(all?.[0]?.revision ?? 0), all?.slice(1))
      assert.deepEqual(await store.feed.since(0, 2), all?.slice(0, 2))
      assert.deepEqual(await store.feed.since(await store.feed.latest()), [])
    })

    test('wakes subscribers once the change can be read, until they unsubscribe', async (t) => {
      // PostgreSQL may still tell the first store of earlier changes.
      const fresh = await openStore(url)
      t.after(() => fresh.close())
      const reads: ReturnType<typeof store.feed.since>[] = []
      const revision = await fresh.feed.latest()
      const stop = fresh.feed.subscribe(() => reads.push(fresh.feed.since(revision)))
      await fresh.write(async () => {})
      assert.equal(reads.length, 0, 'nothing changed')
      await fresh.write(async (writer) => writer.changed('thing', 'd'))
      assert.deepEqual(
        (await reads[0])?.map(({ id }) => id),
        ['d'],
      )
      stop()
      const heard = reads.length
      await fresh.write(async (writer) => writer.changed('thing', 'e'))
      assert.equal(reads.length, heard)
      // It closes next, and PostgreSQL has woken the subscriber a second time.
      await Promise.all(reads)
    })

    test('equal questions at the same time are answered by one query, and later ones by another', async () => {
      const first = store.feed.since(0)
      assert.equal(store.feed.since(0), first)
      assert.notEqual(store.feed.since(0, 1), first)
      await note('f')
      assert.equal((await store.feed.since(0))?.at(-1)?.id, 'f')
    })

    test('a reader that polls during many concurrent writes misses no change and sees each once, in order', async () => {
      // On PostgreSQL a second node writes too.
      const another = kind.name === 'postgres' ? await openStore(url) : store
      const writers = 200
      let last = await store.feed.latest()
      let writing = writers
      const write = async (i: number) => {
        const failing = i % 10 === 9
        const written = (i % 2 ? store : another).write(async (writer) => {
          writer.changed('thing', `w${i}`)
          if (i % 3 === 0) writer.changed('thing', `x${i}`)
          for (let wait = 0; wait < i % 5; wait++) await tick()
          if (failing) throw new Error('rolled back')
        })
        await (failing ? assert.rejects(written, { message: 'rolled back' }) : written)
        writing--
      }
      const done = Promise.all(Array.from({ length: writers }, (_, i) => write(i)))
      const seen: Change[] = []
      for (let isLast = false; !isLast; ) {
        isLast = writing === 0
        const changes = (await store.feed.since(last)) ?? []
        seen.push(...changes)
        last = changes.at(-1)?.revision ?? last
        // Lets writers use SQLite's one connection.
        await tick()
      }
      await done
      if (another !== store) await another.close()
      const expected = Array.from({ length: writers }, (_, i) => i)
        .filter((i) => i % 10 !== 9)
        .flatMap((i) => (i % 3 === 0 ? [`w${i}`, `x${i}`] : [`w${i}`]))
      assert.deepEqual(seen.map(({ id }) => id).sort(), expected.sort())
      for (const [i, { revision }] of seen.entries()) assert.ok(i === 0 || revision > (seen[i - 1]?.revision ?? 0))
    })

    test('a reader so far behind that changes were swept is told to start over, and only then', async () => {
      const before = await store.feed.latest()
      // A sweep happens at every thousandth revision, so make the next one a thousandth.
      const next = KEPT_CHANGES + 5000
      await jumpTo(url, next - 1)
      await note('newest')
      assert.equal(await store.feed.latest(), next)
      const swept = next - KEPT_CHANGES
      assert.equal(await store.feed.since(0), null)
      assert.equal(await store.feed.since(before), null)
      assert.equal(await store.feed.since(swept - 1), null)
      assert.deepEqual(await store.feed.since(next), [])
      // A gap in the revisions, as a rollback leaves it, is no reason to start over.
      await jumpTo(url, next + 10)
      await note('after a gap')
      assert.equal((await store.feed.since(next))?.at(-1)?.id, 'after a gap')
    })

    test('a reader of a change that the database has lost is told to start over, even when its revision belongs to another change', async () => {
      await note('kept')
      const before = await store.feed.latest()
      await note('lost')
      const [lost] = (await store.feed.since(before)) ?? []
      assert.ok(lost)
      assert.deepEqual(await store.feed.since(lost), [])
      await run(url, `delete from changes where revision = ${lost.revision}`)
      assert.equal(await store.feed.since(lost), null)
      await run(url, `insert into changes (revision, kind, id) values (${lost.revision}, 'thing', 'another')`)
      assert.equal(await store.feed.since(lost), null)
      assert.deepEqual(
        (await store.feed.since(before))?.map(({ id }) => id),
        ['another'],
      )
    })
  })
})

/** Makes the database assign the revision after `revision` next. */
function jumpTo(url: string, revision: number): Promise<void> {
  return run(
    url,
    url.startsWith('sqlite:')
      ? `insert into changes (revision, kind, id) values (${revision}, 'thing', 'jump')`
      : `select setval('changes_revision_seq', ${revision})`,
  )
}

/** Bypasses the store. */
async function run(url: string, statement: string): Promise<void> {
  if (url.startsWith('sqlite:')) {
    const db = new DatabaseSync(url.slice('sqlite:'.length))
    db.exec(statement)
    db.close()
    return
  }
  const client = new Client({ connectionString: url })
  await client.connect()
  await client.query(statement)
  await client.end()
}
