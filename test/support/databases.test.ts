/** Each store gives out new databases, and removes them when its suite is over. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { describe, test } from 'node:test'
import { Client } from 'pg'
import { openStore } from '../../src/control-plane/store/store.ts'
import { databaseContents } from './database-contents.ts'
import { eachStore } from './databases.ts'

const given: { name: string; url: string }[] = []

describe('a suite run per store', () => {
  eachStore((store) => {
    test(`gets a new database each time it asks ${store.name} for one`, async () => {
      const urls = [await store.emptyUrl(), await store.emptyUrl()]
      assert.notEqual(urls[0], urls[1])
      for (const url of urls) {
        assert.match(url, store.name === 'sqlite' ? /^sqlite:\/.*\/postern\.db$/ : /^postgres:\/\/.*\/test_[0-9a-f]+$/)
        given.push({ name: store.name, url })
        if (store.name === 'postgres') assert.deepEqual([await isThere(url), await tables(url)], [true, []])
      }
    })
  })
})

describe('a database with tables', () => {
  eachStore(
    (store) => {
      test('is as a server makes it of an empty one', async () => {
        const [copied, made] = [await store.url(), await store.emptyUrl()]
        const before = [await tables(copied), await databaseContents(copied)]
        await (await openStore(made)).close()
        assert.deepEqual(before, [await tables(made), await databaseContents(made)])
      })
    },
    ['postgres'],
  )
})

test('nothing is left of them after the suite', async () => {
  assert.deepEqual([...new Set(given.map(({ name }) => name))], ['sqlite', 'postgres'])
  for (const { name, url } of given) {
    if (name === 'sqlite') assert.equal(existsSync(url.slice('sqlite:'.length, -'/postern.db'.length)), false)
    else assert.equal(await isThere(url), false, 'the database is dropped')
  }
})

function tables(url: string): Promise<unknown[]> {
  return rows(url, "select tablename from pg_tables where schemaname = 'public' order by tablename")
}

/** Asks the server instead of connecting: connecting to a dropped database would leave a misleading FATAL in the log. */
async function isThere(url: string): Promise<boolean> {
  const server = new URL(url)
  const name = server.pathname.slice(1)
  server.pathname = '/postgres'
  return (await rows(server.href, 'select from pg_database where datname = $1', [name])).length === 1
}

async function rows(connectionString: string, text: string, values: readonly string[] = []): Promise<unknown[]> {
  const client = new Client({ connectionString })
  await client.connect()
  try {
    return (await client.query(text, [...values])).rows
  } finally {
    await client.end()
  }
}
