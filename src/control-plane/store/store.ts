/** The store: one database, SQLite or PostgreSQL, behind one set of queries. */
import { Kysely } from 'kysely'
import { Refusal } from '../../model/errors.ts'
import type { OpenedDialect } from './dialect.ts'
import { Feed } from './feed.ts'
import { Overdue, type StoreLimits, storeLimits, within } from './limits.ts'
import { migrate } from './migrations.ts'
import { Reader } from './reader.ts'
import { allRows, insertRows, isEmpty, type StoredRow } from './rows.ts'
import type { Tables } from './tables.ts'
import { Writer } from './writer.ts'

/** Most tries of a transaction that loses races. */
const TRIES = 5

/** The database cannot be used at the moment; trying again later may help. */
export class StoreAway extends Refusal {
  constructor(cause: unknown, msg?: string) {
    super('STORE_UNAVAILABLE', msg, { cause, headers: { 'retry-after': '1' } })
    this.name = 'StoreAway'
  }
}

/** A database constraint refused a write that had passed all checks: a concurrent write came first. */
export class StoreConflict extends Error {
  readonly trouble: 'taken' | 'dangling'

  constructor(trouble: 'taken' | 'dangling', cause: unknown) {
    super(`the database refused the write: ${trouble}`, { cause })
    this.name = 'StoreConflict'
    this.trouble = trouble
  }
}

/** The message for a write that was sent to the database and not confirmed. */
const UNCONFIRMED =
  'The database did not confirm this write in time: it may be stored or not. Check before you repeat it.'

const FULL = "The disk of the database is full: nothing is stored until the server's operator frees space."

/** The fact that is written to learn whether writes work again. */
const WRITE_PROBE = 'write_probe'

interface OpenOptions {
  /** Tests set shorter ones. */
  readonly limits?: StoreLimits
  /** Whether to migrate a database of an older version, rather than throw an `OlderDatabase`. */
  readonly migrates?: boolean
}

/** Opens and migrates the database at `url`: `sqlite:<path>` or `postgres://…`. */
export async function openStore(
  url: string,
  { limits = storeLimits, migrates = true }: OpenOptions = {},
): Promise<Store> {
  const opened = await openDialect(url, limits)
  const db = new Kysely<Tables>({ dialect: opened.dialect })
  const store = new Store(db, opened)
  try {
    await migrateOpened(opened, migrates)
    await store.listen()
    return store
  } catch (error) {
    await store.close().catch(() => {})
    throw error
  }
}

async function migrateOpened({ migrating, facts }: OpenedDialect, isAsked: boolean): Promise<void> {
  const db = new Kysely<Tables>({ dialect: migrating })
  try {
    await migrate(db, facts, { isAsked })
  } finally {
    await db.destroy()
  }
}

async function openDialect(url: string, limits: StoreLimits): Promise<OpenedDialect> {
  if (url.startsWith('sqlite:')) return (await import('./sqlite.ts')).openSqlite(url.slice('sqlite:'.length), limits)
  if (/^postgres(ql)?:\/\//.test(url)) return (await import('./postgres.ts')).openPostgres(url, limits)
  throw new Error('a database URL starts with `sqlite:` or `postgres://`')
}

export class Store {
  readonly feed: Feed
  readonly #db: Kysely<Tables>
  readonly #reader: Reader
  readonly #opened: OpenedDialect
  #stopListening: () => Promise<void> = async () => {}
  #probe: Promise<boolean> | null = null
  /** Whether a write failed because of the database, such as for a full disk, and `answers` has not stored anything since. */
  #refusesWrites = false

  constructor(db: Kysely<Tables>, opened: OpenedDialect) {
    this.#db = db
    this.#opened = opened
    this.#reader = new Reader(db, opened.facts)
    this.feed = new Feed((query) => this.#sorting(() => query(db)))
  }

  get dialect(): 'sqlite' | 'postgres' {
    return this.#opened.facts.name
  }

  /** Starts to listen for changes by other nodes. */
  async listen(): Promise<void> {
    this.#stopListening = await this.#opened.listen(() => this.feed.announce())
  }

  /**
   * Reads outside of any transaction.
   *
   * @param withinMs A shorter time limit than usual, for callers that must answer sooner.
   */
  async read<T>(query: (reader: Reader) => Promise<T>, { withinMs }: { withinMs?: number } = {}): Promise<T> {
    const answer = () => query(this.#reader)
    return this.#sorting(withinMs === undefined ? answer : () => within(withinMs, 'reading the database', answer()))
  }

  /**
   * Whether the database answers within this time, and takes writes again if the last one failed. Callers share one query, so
   * that many cannot use up the connections.
   */
  async answers(withinMs: number): Promise<boolean> {
    this.#probe ??= (this.#refusesWrites ? this.#tryToWrite() : this.feed.latest())
      .then(
        () => true,
        () => false,
      )
      .finally(() => {
        this.#probe = null
      })
    return within(withinMs, 'a test query', this.#probe).catch(() => false)
  }

  async #tryToWrite(): Promise<void> {
    await this.write((writer) => writer.setMeta(WRITE_PROBE, ''))
    this.#refusesWrites = false
  }

  /** Runs `work` as one transaction: all of it is stored, with its changes, or nothing. `work` may run more than once. */
  async write<T>(work: (writer: Writer) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      let isCommitting = false
      try {
        const written = await this.#db.transaction().execute(async (tx) => {
          const writer = new Writer(tx, this.#opened.facts)
          const result = await work(writer)
          const revision = await writer.finish()
          isCommitting = true
          return { result, revision }
        })
        if (written.revision > 0) {
          this.feed.written = Math.max(this.feed.written, written.revision)
          this.feed.announce()
        }
        return written.result
      } catch (error) {
        // Only tried again when the database says that it rolled back; a commit without an answer may have been stored.
        const isLost = this.#opened.facts.classify(error) === 'again'
        if (isLost && attempt < TRIES) continue
        // Nothing was stored, and the database works: the caller may try again.
        if (isLost) throw new Refusal('CONFLICT', undefined, { cause: error, headers: { 'retry-after': '1' } })
        const sorted = this.#sorted(error, isCommitting ? UNCONFIRMED : undefined)
        this.#refusesWrites ||= sorted instanceof StoreAway
        throw sorted
      }
    }
  }

  /** Gives `work` a consistent snapshot of every row, while others go on writing. */
  async snapshot<T>(work: (rows: AsyncIterable<StoredRow>) => Promise<T>): Promise<T> {
    return this.#sorting(() =>
      this.#db
        .transaction()
        .setIsolationLevel('repeatable read')
        .setAccessMode('read only')
        .execute(async (tx) => {
          await this.#opened.facts.allowSlowReader(tx)
          return work(allRows(tx))
        }),
    )
  }

  /** Stores `rows` in an empty database, all or none of them; returns how many there were. */
  async fill(rows: AsyncIterable<StoredRow>): Promise<number> {
    return this.#sorting(() =>
      this.#db.transaction().execute(async (tx) => {
        if (!(await isEmpty(tx))) throw new Error('the database is not empty')
        return insertRows(tx, rows)
      }),
    )
  }

  /** Whether nothing has been stored yet. */
  async isEmpty(): Promise<boolean> {
    return this.#sorting(() => isEmpty(this.#db))
  }

  async close(): Promise<void> {
    await this.#stopListening()
    await this.#db.destroy()
    await this.#opened.close()
  }

  async #sorting<T>(query: () => Promise<T>): Promise<T> {
    try {
      return await query()
    } catch (error) {
      throw this.#sorted(error)
    }
  }

  #sorted(error: unknown, msg?: string): unknown {
    const trouble = error instanceof Overdue ? 'away' : this.#opened.facts.classify(error)
    if (trouble === 'full') return new StoreAway(error, FULL)
    if (trouble === 'away') return new StoreAway(error, msg)
    // This happens only to reads, which a standby database may cancel.
    if (trouble === 'again') return new StoreAway(error)
    if (trouble) return new StoreConflict(trouble, error)
    return error
  }
}
