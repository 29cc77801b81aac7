/** Nodes that start at once on one empty database agree on which makes the first user and which key seals. */
import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { eachStore } from '../../../test/support/databases.ts'
import { IdSource } from '../../lib/ids.ts'
import { openStore, type Store } from '../store/store.ts'
import { listUsers, makeFirstUser } from './manage-users.ts'
import { openSealer } from './sealing.ts'

const NODES = 5
const root = mkdtempSync(join(tmpdir(), 'postern-first-'))
after(() => rmSync(root, { recursive: true, force: true }))

describe('of several first starts at the same moment', () => {
  eachStore((kind) => {
    let store: Store
    before(async () => {
      store = await openStore(await kind.url())
    })
    after(() => store.close())
    const nodes = <T>(start: (node: number) => Promise<T>) =>
      Promise.allSettled(Array.from({ length: NODES }, (_, node) => start(node)))

    test('one makes the first user, and the others start without making one', async () => {
      const now = Date.now
      const preset = { apiKey: null, authtoken: null }
      const outcomes = await nodes(() => makeFirstUser({ store, ids: new IdSource({ now }), now }, preset))
      const results = outcomes.map((outcome) => (outcome.status === 'fulfilled' ? outcome.value : outcome.reason))
      assert.equal(results.filter((result) => result === null).length, NODES - 1, String(results))
      assert.deepEqual(
        (await listUsers({ store, ids: new IdSource({ now }), now })).map(({ id }) => id),
        results.filter((result) => result !== null).map(({ userId }) => userId),
      )
    })

    test('all use the key file of the fastest when they share it, and leave no other file', async () => {
      const folder = mkdtempSync(join(root, 'shared-'))
      const another = await openStore(await kind.url())
      const outcomes = await nodes(() => openSealer(another, join(folder, 'secret.key')))
      await another.close()
      const ids = outcomes.map((outcome) => (outcome.status === 'fulfilled' ? outcome.value.keyId : outcome.reason))
      assert.equal(new Set(ids).size, 1, String(ids))
      assert.deepEqual(readdirSync(folder), ['secret.key'])
    })

    test('one alone may start when each has a key file of its own', async () => {
      const outcomes = await nodes((node) =>
        openSealer(store, join(mkdtempSync(join(root, 'own-')), `secret-${node}.key`)),
      )
      const refused = outcomes.filter((outcome) => outcome.status === 'rejected')
      assert.equal(refused.length, NODES - 1)
      // A node that looks only after the fastest is done makes no file: it is told that its key file is missing.
      const reported = /not the one that seals this database|is missing, and the secrets in the database cannot be read/
      for (const { reason } of refused) assert.match(reason.message, reported)
    })
  })
})
