/** Writes the names whose certificates the server orders by itself, inside one transaction. */
import { sql, type UpdateObject } from 'kysely'
import { inBatches } from './batches.ts'
import {
  CertificateReader,
  COUNTED_NAME,
  type ManagedName,
  type NameStage,
  nameStage,
  type StoredChallenge,
} from './certificate-reader.ts'
import type { Tables } from './tables.ts'

/** The stored state of a name after a step. */
interface KeptName {
  readonly stage: NameStage
  /** From now, in milliseconds. */
  readonly dueInMs: number
  readonly orderKey: string
  readonly state: string
}

/**
 * A node that works on a name holds it for a while, by the database's clock. Every later write for that name first checks
 * that the node still holds it: a node that was frozen for too long finds that another has taken over.
 */
export class CertificateWriter extends CertificateReader {
  /** Stores an account unless there is one for the directory; returns the one that counts. */
  async keepAccount(directory: string, key: string): Promise<{ readonly key: string; readonly url: string }> {
    await this.db
      .insertInto('acme_accounts')
      .values({ directory, key, url: '' })
      .onConflict((oc) => oc.column('directory').doNothing())
      .execute()
    return (await this.account(directory)) ?? { key, url: '' }
  }

  async confirmAccount(directory: string, url: string): Promise<void> {
    await this.db.updateTable('acme_accounts').set({ url }).where('directory', '=', directory).execute()
  }

  async replaceAccountKey(directory: string, key: string): Promise<void> {
    await this.db.updateTable('acme_accounts').set({ key }).where('directory', '=', directory).execute()
  }

  /** Adds names; those that are there already stay as they are. */
  async manage(names: readonly string[]): Promise<void> {
    await inBatches(names.toSorted(), (some) =>
      this.db
        .insertInto('managed_names')
        .values(
          some.map((name) => ({
            name,
            stage: nameStage.first,
            due_at: this.facts.nowMs,
            holder: '',
            held_until: 0,
            order_key: '',
            state: '{}',
          })),
        )
        .onConflict((oc) => oc.column('name').doNothing())
        .execute(),
    )
  }

  /**
   * Makes names due now that have lost their certificate or need another, unless an attempt is under way or must wait. A
   * node that is just checking such a name starts over, since what the node read is out of date.
   */
  async lookAgain(names: readonly string[]): Promise<void> {
    await inBatches(names.toSorted(), (some) =>
      this.db
        .updateTable('managed_names')
        .set({ stage: nameStage.renewal, due_at: this.facts.nowMs, holder: '', held_until: 0 })
        .where('name', 'in', some)
        .where('stage', 'in', [nameStage.renewal, nameStage.waiting])
        .execute(),
    )
  }

  /** Makes a name due now and changes its state, unless somebody works on it or has changed it; returns whether it did. */
  async hasten(name: string, { before, after }: { readonly before: string; readonly after: string }): Promise<boolean> {
    const { numUpdatedRows } = await this.db
      .updateTable('managed_names')
      .set({ due_at: this.facts.nowMs, state: after })
      .where('name', '=', name)
      .where('state', '=', before)
      .where('held_until', '<=', this.facts.nowMs)
      .executeTakeFirst()
    return numUpdatedRows > 0n
  }

  /**
   * Takes a name that is due or waits for its turn, and that nobody works on, for `forMs`; undefined when another was faster. The
   * name stops waiting: the outcome of the work decides when it is due again.
   */
  async take(name: string, holder: string, forMs: number): Promise<ManagedName | undefined> {
    await this.db
      .updateTable('managed_names')
      .set({ stage: nameStage.renewal, due_at: this.facts.nowMs })
      .where('name', '=', name)
      .where('stage', '=', nameStage.waiting)
      .where('held_until', '<=', this.facts.nowMs)
      .execute()
    const row = await this.db
      .updateTable('managed_names')
      .set({ holder, held_until: sql<number>`${this.facts.nowMs} + ${forMs}` })
      .where('name', '=', name)
      .where('due_at', '<=', this.facts.nowMs)
      .where('held_until', '<=', this.facts.nowMs)
      .returningAll()
      .executeTakeFirst()
    return row && { name, stage: row.stage, orderKey: row.order_key, state: row.state }
  }

  /** Holds a name for longer; false when another has taken it over. */
  async hold(name: string, holder: string, forMs: number): Promise<boolean> {
    return this.#changeHeld(name, holder, { held_until: sql<number>`${this.facts.nowMs} + ${forMs}` })
  }

  /** Stores the outcome of a step; the name must be held. */
  async keep(name: string, kept: KeptName): Promise<void> {
    await this.db
      .updateTable('managed_names')
      .set({
        stage: kept.stage,
        due_at: sql<number>`${this.facts.nowMs} + ${Math.round(kept.dueInMs)}`,
        order_key: kept.orderKey,
        state: kept.state,
      })
      .where('name', '=', name)
      .execute()
  }

  /** Makes a name due again only after `inMs`, whatever the outcome of the work on it. */
  async postpone(name: string, holder: string, inMs: number): Promise<void> {
    await this.#changeHeld(name, holder, { due_at: sql<number>`${this.facts.nowMs} + ${inMs}` })
  }

  async replaceOrderKey(name: string, orderKey: string): Promise<void> {
    await this.db.updateTable('managed_names').set({ order_key: orderKey }).where('name', '=', name).execute()
  }

  /** Lets others work on a name. */
  async letGo(name: string, holder: string): Promise<void> {
    await this.#changeHeld(name, holder, { holder: '', held_until: 0 })
  }

  /** Lets go of all names. For a server that is alone with its database, where no other process holds any. */
  async letGoOfAll(): Promise<void> {
    await this.db.updateTable('managed_names').set({ holder: '', held_until: 0 }).where('held_until', '>', 0).execute()
  }

  /** Removes a name. */
  async forget(name: string): Promise<void> {
    await this.db.deleteFrom('managed_names').where('name', '=', name).execute()
  }

  /** Names with an order under way, whose keys are sealed; pass the last one to get the next. */
  async namesWithKeys(after: string, limit: number): Promise<Pick<ManagedName, 'name' | 'orderKey'>[]> {
    const rows = await this.db
      .selectFrom('managed_names')
      .select(['name', 'order_key'])
      .where('name', '>', after)
      .where('order_key', '!=', '')
      .orderBy('name')
      .limit(limit)
      .execute()
    return rows.map(({ name, order_key }) => ({ name, orderKey: order_key }))
  }

  /** Counts one more order if `hasRoom()` allows it; returns whether it did. Concurrent calls of nodes run one after the other. */
  async beginOrder(
    id: string,
    { hasRoom, countedMs }: { readonly hasRoom: () => Promise<boolean>; readonly countedMs: number },
  ): Promise<boolean> {
    await this.#lockOrders()
    if (!(await hasRoom())) return false
    await this.db
      .deleteFrom('acme_orders')
      .where('begun_at', '<=', sql<number>`${this.facts.nowMs} - ${countedMs}`)
      .where('id', 'not like', `${COUNTED_NAME}%`)
      .execute()
    await this.db.insertInto('acme_orders').values({ id, begun_at: this.facts.nowMs }).execute()
    return true
  }

  /**
   * Counts a name, unless `most` others were counted within `withinMs`; returns whether it is counted. Concurrent calls of nodes
   * run one after the other.
   */
  async countName(name: string, most: number, withinMs: number): Promise<boolean> {
    await this.#lockOrders()
    await this.db
      .deleteFrom('acme_orders')
      .where('begun_at', '<=', sql<number>`${this.facts.nowMs} - ${withinMs}`)
      .where('id', 'like', `${COUNTED_NAME}%`)
      .execute()
    const id = COUNTED_NAME + name
    const counted = await this.db
      .selectFrom('acme_orders')
      .select('id')
      .where('id', 'like', `${COUNTED_NAME}%`)
      .execute()
    if (counted.some((row) => row.id === id)) return true
    if (counted.length >= most) return false
    await this.db.insertInto('acme_orders').values({ id, begun_at: this.facts.nowMs }).execute()
    return true
  }

  /** Takes a lock until the transaction ends, so that two nodes cannot both take the last place. */
  async #lockOrders(): Promise<void> {
    if (this.facts.locksRows) await sql`select pg_advisory_xact_lock(${ORDERS_LOCK})`.execute(this.db)
  }

  /** Changes a name that `holder` has; returns whether it has. */
  async #changeHeld(name: string, holder: string, change: UpdateObject<Tables, 'managed_names'>): Promise<boolean> {
    const { numUpdatedRows } = await this.db
      .updateTable('managed_names')
      .set(change)
      .where('name', '=', name)
      .where('holder', '=', holder)
      .executeTakeFirst()
    return numUpdatedRows > 0n
  }

  async putChallenge(challenge: StoredChallenge): Promise<void> {
    const { name, ...rest } = challenge
    await this.db
      .insertInto('acme_challenges')
      .values({ name, ...rest })
      .onConflict((oc) => oc.column('name').doUpdateSet(rest))
      .execute()
  }

  async removeChallenge(name: string): Promise<void> {
    await this.db.deleteFrom('acme_challenges').where('name', '=', name).execute()
  }
}

/** The number of an advisory lock, beside that of the change feed. */
const ORDERS_LOCK = 7_678_377
