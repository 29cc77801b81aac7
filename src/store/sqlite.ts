/** SQLite through node:sqlite: one file, one connection, every commit on disk before it is acknowledged. */
import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { SqliteDialect } from 'kysely'
import type { OpenedDialect, Trouble } from './dialect.ts'

/** Prepared statements kept; our queries have a few dozen shapes, lists of ids add some. */
const MAX_STATEMENTS = 256
/** How long a statement waits for another process that writes, such as `postern admin`. */
const BUSY_TIMEOUT_MS = 5000

/** Opens the database file at `path`, made with its folder when missing. */
export function openSqlite(path: string): OpenedDialect {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const db = new DatabaseSync(path)
  db.exec('pragma journal_mode = wal')
  db.exec('pragma synchronous = full')
  db.exec('pragma foreign_keys = on')
  db.exec(`pragma busy_timeout = ${BUSY_TIMEOUT_MS}`)

  return {
    dialect: new SqliteDialect({ database: statementCache(db) }),
    facts: {
      name: 'sqlite',
      binaryText: 'text',
      autoIncrement: 'integer',
      locksRows: false,
      orderChanges: async () => {},
      classify,
    },
    // One process owns the file, so its own emitter is the whole feed.
    listen: async () => async () => {},
  }
}

/** The slice of a database that Kysely's driver uses, with statements prepared once. */
function statementCache(db: DatabaseSync) {
  const statements = new Map<string, ReturnType<typeof adapt>>()
  return {
    close: () => db.close(),
    prepare(sql: string) {
      const known = statements.get(sql)
      if (known) return known
      // `begin immediate` takes the write lock at once: a transaction that reads first cannot lose it half-way.
      const statement = adapt(db.prepare(sql === 'begin' ? 'begin immediate' : sql))
      if (statements.size >= MAX_STATEMENTS) {
        const oldest = statements.keys().next().value
        if (oldest !== undefined) statements.delete(oldest)
      }
      statements.set(sql, statement)
      return statement
    },
  }
}

function adapt(statement: StatementSync) {
  // Kysely passes what our typed queries bind: strings, numbers and null.
  const bound = (parameters: readonly unknown[]) => parameters as SQLInputValue[]
  return {
    reader: statement.columns().length > 0,
    all: (parameters: readonly unknown[]) => statement.all(...bound(parameters)),
    run: (parameters: readonly unknown[]) => statement.run(...bound(parameters)),
    iterate: (parameters: readonly unknown[]) => statement.iterate(...bound(parameters)),
  }
}

/** SQLite's extended result codes, https://sqlite.org/rescode.html */
const troubles = new Map<number, Trouble>([
  [1555, 'taken'], // constraint: primary key
  [2067, 'taken'], // constraint: unique
  [787, 'dangling'], // constraint: foreign key
  [1811, 'dangling'], // constraint: trigger, which is how `restrict` reports
  [5, 'away'], // busy
  [261, 'away'], // busy: recovery
  [10, 'away'], // i/o error
  [13, 'away'], // disk full
])

function classify(error: unknown): Trouble | undefined {
  if (typeof error !== 'object' || error === null || !('errcode' in error)) return undefined
  const code = Number(error.errcode)
  return troubles.get(code) ?? troubles.get(code & 0xff)
}
