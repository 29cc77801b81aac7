/** Reads which names get their certificates from an authority by themselves, and how far that is. */
import { type Kysely, type Selectable, sql } from 'kysely'
import type { DialectFacts } from './dialect.ts'
import type { Tables } from './tables.ts'

export type StoredChallenge = Readonly<Selectable<Tables['acme_challenges']>>
export type StoredAcmeAccount = Readonly<Selectable<Tables['acme_accounts']>>

/** What is to be done for a name: continue an order, get a first certificate, or renew one. */
export const nameStage = { ordering: 0, first: 1, renewal: 2 } as const
export type NameStage = (typeof nameStage)[keyof typeof nameStage]

/** A name that is looked after. */
export interface ManagedName {
  readonly name: string
  readonly stage: number
  /** The private key for the order under way, sealed; empty without one. */
  readonly orderKey: string
  /** JSON. */
  readonly state: string
}

/** What ids in `acme_orders` begin with that count names and not orders; the name follows. */
export const COUNTED_NAME = 'name/'

export class CertificateReader {
  protected readonly db: Kysely<Tables>
  protected readonly facts: DialectFacts

  constructor(db: Kysely<Tables>, facts: DialectFacts) {
    this.db = db
    this.facts = facts
  }

  async account(directory: string): Promise<StoredAcmeAccount | undefined> {
    return this.db.selectFrom('acme_accounts').selectAll().where('directory', '=', directory).executeTakeFirst()
  }

  async accounts(): Promise<StoredAcmeAccount[]> {
    return this.db.selectFrom('acme_accounts').selectAll().orderBy('directory').execute()
  }

  /** The names of one stage that are due and that nobody works on, longest due first. */
  async due(stage: NameStage, limit: number): Promise<string[]> {
    if (limit <= 0) return []
    const rows = await this.db
      .selectFrom('managed_names')
      .select('name')
      .where('stage', '=', stage)
      .where('due_at', '<=', this.facts.nowMs)
      .where('held_until', '<=', this.facts.nowMs)
      .orderBy('stage')
      .orderBy('due_at')
      .limit(limit)
      .execute()
    return rows.map(({ name }) => name)
  }

  async managedName(name: string): Promise<ManagedName | undefined> {
    const row = await this.db.selectFrom('managed_names').selectAll().where('name', '=', name).executeTakeFirst()
    return row && { name, stage: row.stage, orderKey: row.order_key, state: row.state }
  }

  /** How many names there are in each stage, in the order of `nameStage`. */
  async stageCounts(): Promise<readonly [ordering: number, first: number, renewal: number]> {
    const rows = await this.db
      .selectFrom('managed_names')
      .select(['stage', (eb) => eb.fn.countAll<number>().as('count')])
      .groupBy('stage')
      .execute()
    const count = (stage: NameStage) => Number(rows.find((row) => row.stage === stage)?.count ?? 0)
    return [count(nameStage.ordering), count(nameStage.first), count(nameStage.renewal)]
  }

  /** How many names there are whose last try failed: `state` is JSON of ours, and quotes inside its texts are escaped. */
  async failingCount(): Promise<number> {
    const row = await this.db
      .selectFrom('managed_names')
      .select((eb) => eb.fn.countAll<number>().as('count'))
      .where('state', 'like', '%"fault":{%')
      .executeTakeFirstOrThrow()
    return Number(row.count)
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
