import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { eachStore } from '../../../test/support/databases.ts'
import { openStore, type Store } from '../store/store.ts'
import { EndedPageSessions, LIFETIME_MS, type PageSession } from './ended-page-sessions.ts'

const HOUR = 3_600_000

eachStore((database) => {
  let store: Store
  before(async () => {
    store = await openStore(await database.url())
  })
  after(() => store.close())

  const begunAt = (at: number, id: string, key = 'key_1'): PageSession => ({ key, id, until: at + LIFETIME_MS })

  test('a session that was signed out stays so until it would have ended, and others do not notice', async () => {
    const ended = new EndedPageSessions({ store, now: () => HOUR })
    await ended.add(begunAt(0, 'a'))
    await ended.add(begunAt(0, 'a'))
    assert.deepEqual(
      await Promise.all([begunAt(0, 'a'), begunAt(0, 'b'), begunAt(0, 'a', 'key_2')].map((each) => ended.has(each))),
      [true, false, false],
    )
    await store.write((writer) => writer.logins.removeAnswers(LIFETIME_MS, 100))
    assert.equal(await ended.has(begunAt(0, 'a')), true, 'the clock of another node may be behind')
    await store.write((writer) => writer.logins.removeAnswers(LIFETIME_MS + HOUR, 100))
    assert.equal(await store.read(({ logins }) => logins.count('used_answers')), 0)
  })

  test('of a key that signs out all the time, little is kept, and no ended session is let in again', async () => {
    let now = 0
    const ended = new EndedPageSessions({ store, now: () => now })
    await ended.add(begunAt(0, 'other', 'key_2'))
    for (; now < 250; now++) await ended.add(begunAt(now, `s${now}`))
    const rows = await store.read(({ logins }) => logins.count('used_answers'))
    assert.ok(rows <= 101, `${rows} rows`)
    for (let at = 0; at < 250; at++) assert.equal(await ended.has(begunAt(at, `s${at}`)), true, `s${at}`)
    // Of this key, all that began before the last time that there were too many ended with them.
    assert.deepEqual(
      [
        await ended.has(begunAt(10, 'open')),
        await ended.has(begunAt(249, 'open')),
        await ended.has(begunAt(250, 'new')),
      ],
      [true, false, false],
    )
    assert.equal(await ended.has(begunAt(0, 'open', 'key_2')), false)
  })
})
