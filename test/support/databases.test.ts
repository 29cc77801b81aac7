/** Each store of the harness hands out empty databases, and none is left when its suite is over. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { describe, test } from 'node:test'
import { Client } from 'pg'
import { eachStore } from './databases.ts'

const given: { name: string; url: string }[] = []

describe('a suite run per store', () => {
  eachStore((store) => {
    test(`gets a database of its own each time it asks ${store.name} for one`, async () => {
      const urls = [await store.url(), await store.url()]
      assert.notEqual(urls[0], urls[1])
      for (const url of urls) {
        assert.match(url, store.name === 'sqlite' ? /^sqlite:\/.*\/postern\.db$/ : /^postgres:\/\/.*\/test_[0-9a-f]+$/)
        given.push({ name: store.name, url })
        if (store.name === 'postgres') assert.deepEqual(await tables(url), [])
      }
    })
  })
})

test('nothing is left of them after the suite', async () => {
  assert.deepEqual([...new Set(given.map(({ name }) => name))], ['sqlite', 'postgres'])
  for (const { name, url } of given) {
    if (name === 'sqlite') assert.equal(existsSync(url.slice('sqlite:'.length, -'/postern.db'.length)), false)
    else await assert.rejects(tables(url), { code: '3D000' }, 'the database is dropped')
  }
})

async function tables(connectionString: string): Promise<unknown[]> {
  const client = new Client({ connectionString })
  await client.connect()
  try {
    const { rows } = await client.query("select tablename from pg_tables where schemaname = 'public'")
    return rows
  } finally {
    await client.end()
  }
}
