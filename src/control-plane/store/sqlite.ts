/** SQLite through node:sqlite: one file, one connection on its own thread, every commit on disk before it is acknowledged. */
import { type Dialect, type SqlBool, SqliteAdapter, SqliteIntrospector, SqliteQueryCompiler, sql } from 'kysely'
import type { OpenedDialect, Trouble } from './dialect.ts'
import { type StoreLimits, storeLimits } from './limits.ts'
import { SqliteConnection, ThreadGone } from './sqlite-connection.ts'
import { type SqliteDriverOptions, sqliteThreadDriver } from './sqlite-driver.ts'
import { SqliteTurns } from './sqlite-turns.ts'

/** Opens the database file at `path`; creates it, and its folder, if missing. */
export async function openSqlite(path: string, limits: StoreLimits = storeLimits): Promise<OpenedDialect> {
  const connection = await SqliteConnection.open({ path, openMs: limits.connectionMs })
  const turns = new SqliteTurns()
  const { connectionMs, statementMs, migrationMs } = limits
  const dialect = (limited: SqliteDriverOptions['limits']): Dialect => ({
    createDriver: () => sqliteThreadDriver({ connection, turns, limits: limited }),
    createQueryCompiler: () => new SqliteQueryCompiler(),
    createAdapter: () => new ThreadAdapter(),
    createIntrospector: (db) => new SqliteIntrospector(db),
  })
  return {
    dialect: dialect({ connectionMs, statementMs }),
    migrating: dialect({ connectionMs: migrationMs, statementMs: migrationMs }),
    facts: {
      name: 'sqlite',
      binaryText: 'text',
      autoIncrement: 'integer',
      nowMs: sql<number>`cast(unixepoch('subsec') * 1000 as integer)`,
      server: sql<string>`''`,
      eachOf: (json) => sql`json_each(${json}) as each`,
      isAmong: (column, values) =>
        sql<SqlBool>`${sql.ref(column)} in (select value from json_each(${JSON.stringify(values)}))`,
      locksRows: false,
      orderChanges: async () => {},
      allowSlowReader: async () => {},
      classify,
    },
    listen: async (heard) => {
      const stop = connection.listen(heard)
      return async () => stop()
    },
    close: () => connection.close(statementMs),
  }
}

class ThreadAdapter extends SqliteAdapter {
  /** Makes Kysely run each migration in a transaction, which it does not do on SQLite: a kill must not leave half of one. */
  override get supportsTransactionalDdl(): boolean {
    return true
  }

  /** Our driver does its own queueing; Kysely's would make reads wait while a transaction waits for a lock. */
  override get supportsMultipleConnections(): boolean {
    return true
  }
}

/** SQLite's extended result codes, https://sqlite.org/rescode.html */
const troubles = new Map<number, Trouble>([
  [1555, 'taken'], // constraint: primary key
  [2067, 'taken'], // constraint: unique
  [787, 'dangling'], // constraint: foreign key
  [1811, 'dangling'], // constraint: trigger, which is how `restrict` reports
  [5, 'away'], // busy
  [8, 'away'], // read-only: Linux remounts a failing disk so
  [10, 'away'], // i/o error
  [13, 'full'],
  [4874, 'full'], // i/o error: no space for the index of the write-ahead log
  [14, 'away'], // cannot open
])

function classify(error: unknown): Trouble | undefined {
  if (error instanceof ThreadGone) return 'away'
  if (typeof error !== 'object' || error === null || !('errcode' in error)) return undefined
  const code = Number(error.errcode)
  return troubles.get(code) ?? troubles.get(code & 0xff)
}
