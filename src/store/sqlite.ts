/** SQLite through node:sqlite: one file, one connection, every commit on disk before it is acknowledged. */
import { closeSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { SqliteAdapter, SqliteDialect } from 'kysely'
import { makeFolder } from '../lib/make-folder.ts'
import type { OpenedDialect, Trouble } from './dialect.ts'

/** Prepared statements kept; our queries have a few dozen shapes, lists of ids add some. */
const MAX_STATEMENTS = 256
/** How soon a write of another process is seen. */
const POLL_MS = 1000
/** How long a statement waits for another process that writes, such as `postern admin`. */
const BUSY_TIMEOUT_MS = 5000

/** Opens the database file at `path`, made with its folder when missing. */
export function openSqlite(path: string): OpenedDialect {
  makeFolder(dirname(path))
  // SQLite would make it readable for all; the files it keeps beside take their mode from this one.
  closeSync(openSync(path, 'a', 0o600))
  const db = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS })
  db.exec('pragma journal_mode = wal')
  db.exec('pragma synchronous = full')
  db.exec('pragma foreign_keys = on')

  return {
    dialect: new WholeMigrations({ database: statementCache(db) }),
    facts: {
      name: 'sqlite',
      binaryText: 'text',
      autoIncrement: 'integer',
      locksRows: false,
      orderChanges: async () => {},
      allowSlowReader: async () => {},
      classify,
    },
    listen: async (heard) => {
      const version = db.prepare('pragma data_version')
      let last = version.get()?.data_version
      // This process hears its own writes at once; this is for those of `postern admin` beside it.
      const poll = setInterval(() => {
        const now = version.get()?.data_version
        if (now !== last) heard()
        last = now
      }, POLL_MS)
      poll.unref()
      return async () => clearInterval(poll)
    },
  }
}

/** Runs each migration in a transaction, which Kysely leaves out on SQLite: a kill amid one must leave nothing of it. */
class WholeMigrations extends SqliteDialect {
  override createAdapter(): SqliteAdapter {
    return new TransactionalAdapter()
  }
}

class TransactionalAdapter extends SqliteAdapter {
  override get supportsTransactionalDdl(): boolean {
    return true
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
      if (sql === 'rollback') statement.run = rollbackOnce(db, statement.run)
      if (statements.size >= MAX_STATEMENTS) {
        const oldest = statements.keys().next().value
        if (oldest !== undefined) statements.delete(oldest)
      }
      statements.set(sql, statement)
      return statement
    },
  }
}

/** A full disk makes SQLite roll back by itself; the error of doing it twice would hide that of the disk. */
function rollbackOnce(db: DatabaseSync, rollback: ReturnType<typeof adapt>['run']): typeof rollback {
  return (parameters) => (db.isTransaction ? rollback(parameters) : { changes: 0, lastInsertRowid: 0 })
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
  [8, 'away'], // read-only: a disk in trouble is mounted so
  [10, 'away'], // i/o error
  [13, 'away'], // disk full
  [14, 'away'], // cannot open
])

function classify(error: unknown): Trouble | undefined {
  if (typeof error !== 'object' || error === null || !('errcode' in error)) return undefined
  const code = Number(error.errcode)
  return troubles.get(code) ?? troubles.get(code & 0xff)
}
