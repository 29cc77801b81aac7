/** The short form of `npm run crash`: a few kills on each store. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { startPostgres } from '../support/postgres.ts'
import { crash, crashFirstStarts } from './crash.ts'

describe('a killed server keeps every acknowledged write', () => {
  test('on SQLite', async () => {
    const { acknowledged, serverKills, compared } = await crash({ rounds: 5 })
    assert.equal(serverKills, 5)
    assert.ok(acknowledged > 0 && compared > 0)
  })

  test('on PostgreSQL, even when PostgreSQL itself is killed', async () => {
    const postgres = await startPostgres({ durable: true })
    try {
      const { acknowledged, serverKills, databaseKills, compared } = await crash({ rounds: 3, postgres })
      assert.deepEqual({ serverKills, databaseKills }, { serverKills: 2, databaseKills: 1 })
      assert.ok(acknowledged > 0 && compared > 0)
    } finally {
      await postgres.stop()
    }
  })

  test('and starts after its first start was cut short', () => crashFirstStarts({ rounds: 3, withinMs: 600 }))
})
