/** A real PostgreSQL for tests, in a temporary folder on a free loopback port; it ends with the process that started it. */
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { Socket } from 'node:net'
import { dirname } from 'node:path'
import { createInterface, type Interface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { Client } from 'pg'
import type { Primary } from './postgres-home.ts'
import type { KeeperArguments, KeeperOrder, KeeperReport, Shutdown } from './postgres-keeper.ts'

export interface Postgres {
  /** The database `postgres`, as superuser. */
  readonly url: string
  /** The folder with its files. */
  readonly folder: string
  /** Creates an empty database; resolves with its url. */
  createDatabase(options?: DatabaseOptions): Promise<string>
  /** The last lines that the server has logged since it was ready. */
  log(): Promise<string>
  /** Shuts the server down and starts it again with the same data at the same port; resolves when it is up. */
  restart(how: Shutdown): Promise<void>
  /** Kills the server for good. */
  kill(): Promise<void>
  /** Stops the server and removes its folder; rejects when the server had already ended by itself. */
  stop(): Promise<void>
}

export interface DatabaseOptions {
  /** `binary` sorts text by its bytes, as SQLite does. `language` sorts as people do, as most real servers do. */
  collation?: 'binary' | 'language'
  /** The name of a database to copy, which nobody uses meanwhile. */
  template?: string | undefined
}

export interface PostgresOptions {
  /** Keeps fsync on, for tests that kill it. */
  readonly durable?: boolean
  /** The server to follow, as a read-only standby. */
  readonly primary?: Primary
}

/** Starts a server in about a second. */
export async function startPostgres({ durable = false, primary }: PostgresOptions = {}): Promise<Postgres> {
  // The keeper is a separate process in its own session. Its stdin closes when we die, in whatever way.
  const writes = durable ? 'durable' : 'fast'
  const how: KeeperArguments = primary ? [writes, primary.url, primary.folder] : [writes]
  const keeper = spawn(process.execPath, [keeperFile, ...how.filter((each) => each !== undefined)], {
    detached: true,
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  const ended = once(keeper, 'exit')
  // The keeper may already be gone when we tell it to stop; its exit code shows that.
  keeper.stdin.on('error', () => {})
  const reports = createInterface({ input: keeper.stdout })
  const report = await nextReport(reports)
  if ('failed' in report) throw new Error(`PostgreSQL did not start: ${report.failed}`)
  const { url, logFile } = report
  let later = nextReport(reports)

  // These handles must not keep our event loop alive: a test process that is done should exit, and the server with it.
  const handles = [keeper, ...[keeper.stdin, keeper.stdout].filter((pipe) => pipe instanceof Socket)]
  for (const handle of handles) handle.unref()

  const tell = async (order: KeeperOrder): Promise<void> => {
    keeper.stdin.write(`${order}\n`)
    const done = await later
    if ('failed' in done) throw new Error(`PostgreSQL failed: ${done.failed}`)
    later = nextReport(reports)
  }
  return {
    url,
    folder: dirname(logFile),
    createDatabase: (options) => createDatabase(url, options),
    log: async () => lastLines(await readFile(logFile, 'utf8')),
    restart: tell,
    kill: () => tell('kill'),
    async stop() {
      for (const handle of handles) handle.ref()
      keeper.stdin.end()
      const [[code], last] = await Promise.all([ended, later])
      if (code !== 0 && 'failed' in last) throw new Error(`PostgreSQL failed: ${last.failed}`)
    },
  }
}

/** Creates an empty database on the server at `serverUrl`; resolves with its url. */
export async function createDatabase(
  serverUrl: string,
  { collation = 'binary', template = 'template1' }: DatabaseOptions = {},
): Promise<string> {
  const name = `test_${randomBytes(6).toString('hex')}`
  const language = collation === 'language' ? "LOCALE_PROVIDER icu ICU_LOCALE 'en-US' TEMPLATE template0" : ''
  const source = language || `TEMPLATE ${template}`
  // By default PostgreSQL writes each page of the copy to its log: three times the CPU time of copying the files.
  await query(serverUrl, `CREATE DATABASE ${name} ${source} STRATEGY file_copy`)
  const url = new URL(serverUrl)
  url.pathname = `/${name}`
  return url.href
}

/** Drops a database that `createDatabase` created, even if clients are still connected. */
export async function dropDatabase(serverUrl: string, databaseUrl: string): Promise<void> {
  await query(serverUrl, `DROP DATABASE IF EXISTS ${new URL(databaseUrl).pathname.slice(1)} WITH (FORCE)`)
}

const LOG_LINES = 20
const keeperFile = fileURLToPath(new URL('postgres-keeper.ts', import.meta.url))

/** The next line of the keeper, or a failure when it ends without one. */
function nextReport(lines: Interface): Promise<KeeperReport> {
  return new Promise((resolve) => {
    // The keeper writes only lines of this type.
    lines.once('line', (line) => resolve(JSON.parse(line) as KeeperReport))
    lines.once('close', () => resolve({ failed: 'its keeper ended without a report' }))
  })
}

async function query(url: string, sql: string): Promise<void> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(sql)
  } finally {
    await client.end()
  }
}

function lastLines(log: string): string {
  const lines = log.trimEnd().split('\n')
  return lines
    .slice(lines.findIndex((line) => line.includes('ready to accept connections')) + 1)
    .slice(-LOG_LINES)
    .join('\n')
}
