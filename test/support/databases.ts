/** Runs a suite once per store, with fresh databases that are removed after the suite. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe } from 'node:test'
import { createDatabase, dropDatabase, startPostgres } from './postgres.ts'

export interface TestStore {
  readonly name: 'sqlite' | 'postgres'
  /** The url of a new and empty database. */
  url(): Promise<string>
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
    const make = makers[name]
    describe(name, () => {
      const removals: (() => Promise<void>)[] = []
      define({
        name,
        async url() {
          const { url, remove } = await make()
          removals.push(remove)
          return url
        },
      })
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

type Maker = () => Promise<{ url: string; remove: () => Promise<void> }>

const makers: Record<TestStore['name'], Maker> = {
  async sqlite() {
    const folder = await mkdtemp(join(tmpdir(), 'postern-sqlite-'))
    return { url: `sqlite:${join(folder, 'postern.db')}`, remove: () => rm(folder, { recursive: true, force: true }) }
  },
  async postgres() {
    const server = await serverUrl()
    const url = await createDatabase(server)
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

// One server for all suites of a process: starting one takes longer than most suites.
let own: Promise<string> | undefined
