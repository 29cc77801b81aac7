/** The differences between SQLite and PostgreSQL, as facts that one set of queries uses. */
import type { Dialect, Kysely, RawBuilder, SqlBool, Transaction } from 'kysely'
import type { Tables } from './tables.ts'

export interface DialectFacts {
  readonly name: 'sqlite' | 'postgres'
  /** Column type for text that is compared byte by byte. */
  readonly binaryText: string
  /** Column type of a number that the database increments. */
  readonly autoIncrement: string
  /** The database's clock, in milliseconds since 1970. */
  readonly nowMs: RawBuilder<number>
  /** Identifies the run of the database server; another server may lack the last writes. */
  readonly server: RawBuilder<string>
  /** The elements of an array in JSON, as the rows of a table `each` with one column `value`. */
  readonly eachOf: (json: string) => RawBuilder<unknown>
  /** Whether a column is one of `values`, by its index. In PostgreSQL, a subquery of them would make the plan unpredictable. */
  readonly isAmong: (column: string, values: readonly string[]) => RawBuilder<SqlBool>
  /** Whether a row must be locked explicitly before it is read and rewritten; SQLite has one writer at a time anyway. */
  readonly locksRows: boolean
  /** Runs just before a transaction writes to the change feed, so that revisions become visible in order. */
  readonly orderChanges: (tx: Kysely<Tables>) => Promise<void>
  /** Lifts the limit on idle time within this transaction, for a slow consumer of its rows. */
  readonly allowSlowReader: (tx: Transaction<Tables>) => Promise<void>
  /** Sorts a driver's error into what callers can act on. */
  readonly classify: (error: unknown) => Trouble | undefined
}

/**
 * `taken`: a claim or id exists already. `dangling`: the target of a reference is missing, or is still referred to.
 * `again`: the transaction lost a race and may be repeated. `away`: the database is unavailable. `full`: its disk is full.
 */
export type Trouble = 'taken' | 'dangling' | 'again' | 'away' | 'full'

/** One opened database: how to reach it, and how to hear of changes. */
export interface OpenedDialect {
  readonly dialect: Dialect
  /** The same database, with longer time limits for migrations. */
  readonly migrating: Dialect
  readonly facts: DialectFacts
  /** Calls `heard` after changes made by other processes; returns a function that stops it. */
  readonly listen: (heard: () => void) => Promise<() => Promise<void>>
  /** Closes what `dialect` and `migrating` share, after both are destroyed. */
  readonly close: () => Promise<void>
}

/** The queries on some of the tables. */
export class Queries {
  protected readonly db: Kysely<Tables>
  protected readonly facts: DialectFacts

  constructor(db: Kysely<Tables>, facts: DialectFacts) {
    this.db = db
    this.facts = facts
  }
}
