/** The change feed: lists which resources changed since a revision, in order, and wakes subscribers. */
import type { Kysely } from 'kysely'
import type { Tables } from './tables.ts'

export interface Change {
  readonly revision: number
  readonly kind: string
  readonly id: string
}

/** The ids of what changed of some kinds, each once. */
export function changedIds(changes: readonly Change[], kinds: readonly string[]): string[] {
  return [...new Set(changes.filter(({ kind }) => kinds.includes(kind)).map(({ id }) => id))]
}

/** The last change that was read, or its revision alone. */
type ReadUpTo = Pick<Change, 'revision'> & Partial<Change>

/** How many changes are kept; a reader further behind has to read everything again. */
export const KEPT_CHANGES = 100_000

/** Runs a query and classifies its errors. */
type Ask = <T>(query: (db: Kysely<Tables>) => Promise<T>) => Promise<T>

export class Feed {
  readonly #ask: Ask
  readonly #listeners = new Set<() => void>()
  /** Queries of this turn of the event loop, by their arguments: all subscribers wake at once, most at the same revision. */
  readonly #asked = new Map<string, Promise<readonly Change[] | null>>()
  /** The highest revision that this process has written; 0 before the first. */
  written = 0

  constructor(ask: Ask) {
    this.#ask = ask
  }

  /** Calls `heard` after each change, and perhaps more often; returns a function that unsubscribes. */
  subscribe(heard: () => void): () => void {
    this.#listeners.add(heard)
    return () => this.#listeners.delete(heard)
  }

  /** Wakes all subscribers. */
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
   * Changes after the last one that was read, or after a revision, oldest first, at most `limit`. Null when the reader must
   * read everything again: some changes are no longer kept, or the database has lost a change that was read. A standby
   * database that was promoted may lack the last changes of its primary, and gives the revisions of these to other changes.
   */
  since(last: Change | number, limit = 1000): Promise<readonly Change[] | null> {
    const after: ReadUpTo = typeof last === 'number' ? { revision: last } : last
    const key = JSON.stringify([after.revision, after.kind, after.id, limit])
    const asked = this.#asked.get(key)
    if (asked) return asked
    // The query begins after this turn, so that no answer is older than its question.
    const answer = Promise.resolve().then(() => {
      this.#asked.delete(key)
      return this.#since(after, limit)
    })
    this.#asked.set(key, answer)
    return answer
  }

  #since({ revision, kind, id }: ReadUpTo, limit: number): Promise<readonly Change[] | null> {
    return this.#ask(async (db) => {
      const found = await db
        .selectFrom('changes')
        .selectAll()
        .where('revision', '>=', revision)
        .orderBy('revision')
        .limit(limit + 1)
        .execute()
      const [first] = found
      // PostgreSQL leaves gaps where a transaction was rolled back, so a gap alone does not mean that rows are gone.
      if (revision === 0) return first && (await oldest(db)) > 1 ? null : found.slice(0, limit)
      const isKept =
        first?.revision === revision && first.kind === (kind ?? first.kind) && first.id === (id ?? first.id)
      return isKept ? found.slice(1) : null
    })
  }
}

async function oldest(db: Kysely<Tables>): Promise<number> {
  const row = await db.selectFrom('meta').select('value').where('key', '=', OLDEST_CHANGE).executeTakeFirst()
  return row ? Number(row.value) : 1
}

/** The meta row that holds the oldest revision still kept. */
export const OLDEST_CHANGE = 'oldest_change'
