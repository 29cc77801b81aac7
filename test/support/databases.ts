/**
 * Runs a suite once per store, with fresh databases that are removed after the suite.
 *
 * PostgreSQL needs three times as much CPU time to make an empty database and our tables in it as to copy one that has them.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe } from 'node:test'
import { Client } from 'pg'
import { openStore } from '../../src/control-plane/store/store.ts'
import { createDatabase, dropDatabase, startPostgres } from './postgres.ts'

const TEMPLATE = 'test_with_tables'

export interface TestStore {
  readonly name: 'sqlite' | 'postgres'
  /** The url of a new database without rows; PostgreSQL has our tables in it already. */
  url(): Promise<string>
  /** The url of a new and empty database. */
  emptyUrl(): Promise<string>
}

/**
 * Defines the same suite for SQLite and for PostgreSQL, or only for the stores that are named.
 *
 * @example
 * eachStore((store) => {
 *   test('keeps what is written', async () => {
 *     const opened = await openStore({ url: await store.url() })
 *   })
 * })
 */
export function eachStore(
  define: (store: TestStore) => void,
  names: readonly TestStore['name'][] = ['sqlite', 'postgres'],
): void {
  for (const name of names) {
    describe(name, () => {
      const removals: (() => Promise<void>)[] = []
      const make = async (how?: MakeOptions): Promise<string> => {
        const { url, remove } = await makers[name](how)
        removals.push(remove)
        return url
      }
      define({ name, url: () => make({ hasTables: true }), emptyUrl: () => make() })
      // Registered last so that it runs last: the suite's own hooks close what they opened first.
      after(async () => {
        for (const remove of removals) await remove()
      })
    })
  }
}

/** The url of a new, empty PostgreSQL database, which is dropped when the calling test ends. */
export async function postgresUrl(): Promise<string> {
  const { url, remove } = await makers.postgres()
  after(remove)
  return url
}

interface MakeOptions {
  /** SQLite makes its tables almost as fast as it copies a file. */
  readonly hasTables?: boolean
}

type Maker = (options?: MakeOptions) => Promise<{ url: string; remove: () => Promise<void> }>

const makers: Record<TestStore['name'], Maker> = {
  async sqlite() {
    const folder = await mkdtemp(join(tmpdir(), 'postern-sqlite-'))
    return { url: `sqlite:${join(folder, 'postern.db')}`, remove: () => rm(folder, { recursive: true, force: true }) }
  },
  async postgres({ hasTables = false } = {}) {
    const server = await serverUrl()
    if (hasTables) withTables ??= makeTemplate(server)
    const template = hasTables ? await withTables : undefined
    const url = await createDatabase(server, { template })
    return { url, remove: () => dropDatabase(server, url) }
  },
}

/** The server that `npm test` shares between files, or one for this process only, which ends with it. */
function serverUrl(): Promise<string> {
  const shared = process.env.POSTERN_TEST_POSTGRES_URL
  if (shared) return Promise.resolve(shared)
  own ??= startPostgres().then((postgres) => postgres.url)
  return own
}

/** Makes the database that others are copied from, once for all processes on the server. */
async function makeTemplate(serverUrl: string): Promise<string> {
  const server = new Client({ connectionString: serverUrl })
  await server.connect()
  try {
    await server.query('select pg_advisory_lock(hashtext($1))', [TEMPLATE])
    const { rows } = await server.query('select from pg_database where datname = $1', [TEMPLATE])
    if (rows.length === 0) {
      const url = await createDatabase(serverUrl)
      const store = await openStore(url)
      await store.close()
      // The name tells the other processes that it is complete.
      await server.query(`alter database ${new URL(url).pathname.slice(1)} rename to ${TEMPLATE}`)
    }
    return TEMPLATE
  } finally {
    // This releases the lock, too.
    await server.end()
  }
}

let withTables: Promise<string> | undefined

// One server for all suites of a process: starting one takes longer than most suites.
let own: Promise<string> | undefined
