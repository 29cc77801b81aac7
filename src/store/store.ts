/** The store: one database, SQLite or PostgreSQL, behind one set of queries. */
import { Kysely } from 'kysely'
import { Refusal } from '../model/errors.ts'
import type { OpenedDialect } from './dialect.ts'
import { Feed } from './feed.ts'
import { migrate } from './migrations.ts'
import { Reader } from './reader.ts'
import { allRows, insertRows, isEmpty, type StoredRow } from './rows.ts'
import type { Tables } from './tables.ts'
import { Writer } from './writer.ts'

/** How often a transaction that lost a race is tried in all. */
const TRIES = 5

/** The database cannot be used at the moment; trying again later may help. */
export class StoreAway extends Refusal {
  constructor(cause: unknown) {
    super('STORE_UNAVAILABLE', undefined, { cause, headers: { 'retry-after': '1' } })
    this.name = 'StoreAway'
  }
}

/** A constraint of the database refused a write that the checks before it had let through: somebody was faster. */
export class StoreConflict extends Error {
  readonly trouble: 'taken' | 'dangling'

  constructor(trouble: 'taken' | 'dangling', cause: unknown) {
    super(`the database refused the write: ${trouble}`, { cause })
    this.name = 'StoreConflict'
    this.trouble = trouble
  }
}

/** Opens and migrates the database behind `url`: `sqlite:<path>` or `postgres://…`. */
export async function openStore(url: string): Promise<Store> {
  const opened = await openDialect(url)
  const db = new Kysely<Tables>({ dialect: opened.dialect })
  try {
    await migrate(db, opened.facts)
    const store = new Store(db, opened)
    await store.listen()
    return store
  } catch (error) {
    await db.destroy().catch(() => {})
    throw error
  }
}

async function openDialect(url: string): Promise<OpenedDialect> {
  if (url.startsWith('sqlite:')) return (await import('./sqlite.ts')).openSqlite(url.slice('sqlite:'.length))
  if (/^postgres(ql)?:\/\//.test(url)) return (await import('./postgres.ts')).openPostgres(url)
  throw new Error('a database URL starts with `sqlite:` or `postgres://`')
}

export class Store {
  readonly feed: Feed
  readonly #db: Kysely<Tables>
  readonly #reader: Reader
  readonly #opened: OpenedDialect
  #stopListening: () => Promise<void> = async () => {}

  constructor(db: Kysely<Tables>, opened: OpenedDialect) {
    this.#db = db
    this.#opened = opened
    this.#reader = new Reader(db)
    this.feed = new Feed((query) => this.#sorting(() => query(db)))
  }

  get dialect(): 'sqlite' | 'postgres' {
    return this.#opened.facts.name
  }

  /** Starts hearing of changes that other nodes make. */
  async listen(): Promise<void> {
    this.#stopListening = await this.#opened.listen(() => this.feed.announce())
  }

  /** Reads outside of any transaction. */
  async read<T>(query: (reader: Reader) => Promise<T>): Promise<T> {
    return this.#sorting(() => query(this.#reader))
  }

  /** Runs `work` as one transaction: all of it is stored, with its changes, or nothing is. It may run more than once. */
  async write<T>(work: (writer: Writer) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        const written = await this.#db.transaction().execute(async (tx) => {
          const writer = new Writer(tx, this.#opened.facts)
          const result = await work(writer)
          return { result, changed: await writer.finish() }
        })
        if (written.changed) this.feed.announce()
        return written.result
      } catch (error) {
        if (this.#opened.facts.classify(error) === 'again' && attempt < TRIES) continue
        throw this.#sorted(error)
      }
    }
  }

  /** Gives `work` every row as of one moment, while others go on writing. */
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

  /** Stores all of `rows` in a database that holds nothing, or nothing of them; gives how many there were. */
  async fill(rows: AsyncIterable<StoredRow>): Promise<number> {
    return this.#sorting(() =>
      this.#db.transaction().execute(async (tx) => {
        if (!(await isEmpty(tx))) throw new Error('the database is not empty')
        return insertRows(tx, rows)
      }),
    )
  }

  /** Whether nothing was ever stored. */
  async isEmpty(): Promise<boolean> {
    return this.#sorting(() => isEmpty(this.#db))
  }

  async close(): Promise<void> {
    await this.#stopListening()
    await this.#db.destroy()
  }

  async #sorting<T>(query: () => Promise<T>): Promise<T> {
    try {
      return await query()
    } catch (error) {
      throw this.#sorted(error)
    }
  }

  #sorted(error: unknown): unknown {
    const trouble = this.#opened.facts.classify(error)
    if (trouble === 'away' || trouble === 'again') return new StoreAway(error)
    if (trouble) return new StoreConflict(trouble, error)
    return error
  }
}
