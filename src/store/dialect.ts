/** What differs between SQLite and PostgreSQL, as facts that the one set of queries reads. */
import type { Dialect, Transaction } from 'kysely'
import type { Tables } from './tables.ts'

export interface DialectFacts {
  readonly name: 'sqlite' | 'postgres'
  /** Column type for text that is compared byte by byte. */
  readonly binaryText: string
  /** Column type that counts upwards by itself. */
  readonly autoIncrement: string
  /** Whether a row must be locked by name before it is read to be written; SQLite has one writer at a time anyway. */
  readonly locksRows: boolean
  /** Runs just before a transaction writes its changes, so that revisions become visible in their own order. */
  readonly orderChanges: (tx: Transaction<Tables>) => Promise<void>
  /** Lets this transaction wait between statements for as long as whoever takes its rows needs. */
  readonly allowSlowReader: (tx: Transaction<Tables>) => Promise<void>
  /** Sorts a driver's error into what callers can act on. */
  readonly classify: (error: unknown) => Trouble | undefined
}

/**
 * `taken`: a claim or id exists. `dangling`: a reference's target is missing, or a target is still referred to.
 * `again`: the transaction lost a race and may be repeated. `away`: the database cannot be used now.
 */
export type Trouble = 'taken' | 'dangling' | 'again' | 'away'

/** One opened database: how to reach it and how it tells that something changed. */
export interface OpenedDialect {
  readonly dialect: Dialect
  /** The same database with time for migrations. */
  readonly migrating: Dialect
  readonly facts: DialectFacts
  /** Starts telling `heard` of changes made by others; gives back how to stop. */
  readonly listen: (heard: () => void) => Promise<() => Promise<void>>
  /** Closes what both dialects share, after each of them. */
  readonly close: () => Promise<void>
}
