/** Reads the names whose certificates the server orders by itself, and the state of each. */
import { type Selectable, sql } from 'kysely'
import { Queries } from './dialect.ts'
import type { Tables } from './tables.ts'

/** The kind of changes of challenges in the feed; their id is the name. */
export const CHALLENGE = 'acme_challenge'

export type StoredChallenge = Readonly<Selectable<Tables['acme_challenges']>>
type StoredAcmeAccount = Readonly<Selectable<Tables['acme_accounts']>>

/**
 * What is to be done for a name: continue an order, get a first certificate, check whether to renew one, or renew it when its
 * turn comes. A name that waits for its turn is due when it can wait no longer.
 */
export const nameStage = { ordering: 0, first: 1, renewal: 2, waiting: 3 } as const
export type NameStage = (typeof nameStage)[keyof typeof nameStage]

/** A name whose certificate the server orders. */
export interface ManagedName {
  readonly name: string
  readonly stage: number
  /** The private key for the order under way, sealed; empty without one. */
  readonly orderKey: string
  /** JSON. */
  readonly state: string
}

/** The number of names by what is to be done for them, and of those whose last try failed. */
export interface NameCounts {
  readonly ordering: number
  readonly first: number
  readonly renewal: number
  readonly failing: number
}

/** The prefix of ids in `acme_orders` that count names rather than orders; the name follows. */
export const COUNTED_NAME = 'name/'

export class CertificateReader extends Queries {
  async account(directory: string): Promise<StoredAcmeAccount | undefined> {
    return this.db.selectFrom('acme_accounts').selectAll().where('directory', '=', directory).executeTakeFirst()
  }

  async accounts(): Promise<StoredAcmeAccount[]> {
    return this.db.selectFrom('acme_accounts').selectAll().orderBy('directory').execute()
  }

  /** The names of one stage that are due and that nobody works on, longest due first. */
  async due(stage: NameStage, limit: number): Promise<string[]> {
    if (limit <= 0) return []
    const rows = await this.#unheld(stage, limit).select('name').where('due_at', '<=', this.facts.nowMs).execute()
    return rows.map(({ name }) => name)
  }

  /** Names that wait for their turn, most urgent first. */
  async waiting(limit: number): Promise<{ readonly name: string; readonly isDue: boolean }[]> {
    if (limit <= 0) return []
    const rows = await this.#unheld(nameStage.waiting, limit)
      .select(['name', sql<number>`${this.facts.nowMs} - due_at`.as('overdue_ms')])
      .execute()
    return rows.map(({ name, overdue_ms }) => ({ name, isDue: Number(overdue_ms) >= 0 }))
  }

  /** The names of one stage that nobody works on, longest due first. */
  #unheld(stage: NameStage, limit: number) {
    return this.db
      .selectFrom('managed_names')
      .where('stage', '=', stage)
      .where('held_until', '<=', this.facts.nowMs)
      .orderBy('stage')
      .orderBy('due_at')
      .limit(limit)
  }

  async managedName(name: string): Promise<ManagedName | undefined> {
    const row = await this.db.selectFrom('managed_names').selectAll().where('name', '=', name).executeTakeFirst()
    return row && { name, stage: row.stage, orderKey: row.order_key, state: row.state }
  }

  /** Counts names; reads all of them, so it takes longer the more there are. */
  async nameCounts(): Promise<NameCounts> {
    const rows = await this.db
      .selectFrom('managed_names')
      .select(['stage', (eb) => eb.fn.countAll<number>().as('count')])
      // `state` is our own JSON, in which quotes inside texts are escaped.
      .select(sql<number>`sum(case when state like '%"fault":{%' then 1 else 0 end)`.as('failing'))
      .groupBy('stage')
      .execute()
    const sum = (part: 'count' | 'failing', stages: readonly number[]) =>
      rows.filter(({ stage }) => stages.includes(stage)).reduce((all, row) => all + Number(row[part]), 0)
    const { ordering, first, renewal, waiting } = nameStage
    return {
      ordering: sum('count', [ordering]),
      first: sum('count', [first]),
      renewal: sum('count', [renewal, waiting]),
      failing: sum('failing', Object.values(nameStage)),
    }
  }

  /** How many orders were begun in the last `withinMs`. */
  async ordersWithin(withinMs: number): Promise<number> {
    const row = await this.db
      .selectFrom('acme_orders')
      .select((eb) => eb.fn.countAll<number>().as('count'))
      .where('begun_at', '>', sql<number>`${this.facts.nowMs} - ${withinMs}`)
      .where('id', 'not like', `${COUNTED_NAME}%`)
      .executeTakeFirstOrThrow()
    return Number(row.count)
  }

  /** All challenges, or those of some names. */
  async challenges(names?: readonly string[]): Promise<StoredChallenge[]> {
    if (names?.length === 0) return []
    const all = this.db.selectFrom('acme_challenges').selectAll()
    return (names ? all.where('name', 'in', names) : all).orderBy('name').execute()
  }
}
