/** The change feed: tells that something changed, and what, in order, since a revision. */
import type { Kysely } from 'kysely'
import type { Tables } from './tables.ts'

export interface Change {
  readonly revision: number
  readonly kind: string
  readonly id: string
}

/** How many changes are kept; a reader further behind starts over from the whole. */
export const KEPT_CHANGES = 100_000

/** Runs a query and sorts its errors. */
type Ask = <T>(query: (db: Kysely<Tables>) => Promise<T>) => Promise<T>

export class Feed {
  readonly #ask: Ask
  readonly #listeners = new Set<() => void>()

  constructor(ask: Ask) {
    this.#ask = ask
  }

  /** Calls `heard` after something changed, perhaps more often; gives back how to stop. */
  subscribe(heard: () => void): () => void {
    this.#listeners.add(heard)
    return () => this.#listeners.delete(heard)
  }

  /** Wakes everyone who subscribed. */
  announce(): void {
    for (const heard of this.#listeners) heard()
  }

  /** The newest revision, 0 when nothing has changed yet. */
  async latest(): Promise<number> {
    const row = await this.#ask((db) =>
      db
        .selectFrom('changes')
        .select((eb) => eb.fn.max('revision').as('revision'))
        .executeTakeFirst(),
    )
    return row?.revision ?? 0
  }

  /**
   * Changes after `revision`, oldest first, at most `limit`; null when some of them are no longer kept, which asks the
   * reader to start over.
   */
  async since(revision: number, limit = 1000): Promise<readonly Change[] | null> {
    return this.#ask(async (db) => {
      const changes = await db
        .selectFrom('changes')
        .selectAll()
        .where('revision', '>', revision)
        .orderBy('revision')
        .limit(limit)
        .execute()
      const first = changes[0]
      // PostgreSQL leaves holes where a transaction was rolled back, so a gap alone does not say that rows are gone.
      if (first && first.revision > revision + 1 && revision < (await oldest(db)) - 1) return null
      return changes
    })
  }
}

async function oldest(db: Kysely<Tables>): Promise<number> {
  const row = await db.selectFrom('meta').select('value').where('key', '=', OLDEST_CHANGE).executeTakeFirst()
  return row ? Number(row.value) : 1
}

/** The meta row that holds the oldest revision still kept. */
export const OLDEST_CHANGE = 'oldest_change'
