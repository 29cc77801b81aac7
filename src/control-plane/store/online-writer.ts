/**
 * Writes what is online in a cluster, inside one transaction.
 *
 * One thing: every statement that one transaction may need.
 */
import { type RawBuilder, type SqlBool, sql } from 'kysely'
import { inBatches, sortedBy } from './batches.ts'
import type { DialectFacts } from './dialect.ts'
import { LEFT, OnlineReader } from './online-reader.ts'
import {
  addressColumns,
  addressOf,
  fieldsIn,
  holderColumns,
  nodeRow,
  type StoredAddress,
  type StoredHeldAddress,
  type StoredHolder,
  type StoredNode,
  type StoredOnlineSession,
  type StoredOnlineTunnel,
  sessionColumns,
  tunnelColumns,
  withHolders,
} from './online-rows.ts'
import type { Tables } from './tables.ts'

export interface TunnelWithPairs extends StoredOnlineTunnel {
  /** Its labels, each as one text. */
  readonly pairs: readonly string[]
}

/** A holder of a place. */
export interface FoundHolder extends StoredHolder {
  /** The lease of its node runs. */
  readonly isAlive: boolean
  /** The lease of its node has run out, but the node may live on. When neither is so, the holder no longer counts. */
  readonly isLost: boolean
}

/** A place without holders. */
const FREE = { ownerId: '', isPooled: false, digest: '', isUnnamed: false, port: null, config: '{}' } as const

/** The condition of an upsert that replaces every row. */
const ALWAYS: RawBuilder<SqlBool> = sql<SqlBool>`1 = 1`

/**
 * A node writes its rows only in a transaction that has called `holdLease`. Otherwise they could be written after the node
 * was swept, and nobody would ever remove them. Places must be locked before they are written.
 */
export class OnlineWriter extends OnlineReader {
  /**
   * Stores a node and makes its lease run for `leaseMs` from now. Returns whether it ran until now: if not, others may
   * have taken what the node has.
   */
  async renew(node: StoredNode, leaseMs: number): Promise<boolean> {
    let before = this.db.selectFrom('nodes').select(runs(this.facts.nowMs).as('runs')).where('id', '=', node.id)
    // Keeps the node from being swept meanwhile, and does not wait for transactions that hold the lease.
    if (this.facts.locksRows) before = before.forNoKeyUpdate()
    const found = await before.executeTakeFirst()
    const { id, ...row } = { ...nodeRow(node), expires_at: sql<number>`${this.facts.nowMs} + ${leaseMs}` }
    await this.db
      .insertInto('nodes')
      .values({ id, ...row })
      // Without the id: setting it, even to its own value, would make PostgreSQL wait for transactions that hold the lease.
      .onConflict((oc) => oc.column('id').doUpdateSet(row))
      .execute()
    return found?.runs === 1
  }

  /** Whether a node's lease runs; if so, the node is not swept until this transaction ends. */
  async holdLease(nodeId: string): Promise<boolean> {
    let held = this.db.selectFrom('nodes').select(runs(this.facts.nowMs).as('runs')).where('id', '=', nodeId)
    // Not `for share`: it would make `renew` wait, and a busy node could lose its lease that way.
    if (this.facts.locksRows) held = held.forKeyShare()
    return (await held.executeTakeFirst())?.runs === 1
  }

  /** Ends a node's lease now. */
  async leave(nodeId: string): Promise<void> {
    await this.db.updateTable('nodes').set({ expires_at: LEFT }).where('id', '=', nodeId).execute()
  }

  /** Stores sessions, and takes over those that another node had. */
  async putSessions(sessions: readonly StoredOnlineSession[]): Promise<void> {
    await this.#storeSessions(sessions)
  }

  /** Stores sessions, except those that another live node has by now. Returns the ids of those stored. */
  keepSessions(sessions: readonly StoredOnlineSession[]): Promise<string[]> {
    return this.#storeSessions(sessions, this.#isOwn('online_sessions'))
  }

  /** Removes sessions, except those that another node has by now. */
  async removeSessions(nodeId: string, ids: readonly string[]): Promise<void> {
    await inBatches(ids.toSorted(), (some) =>
      this.db.deleteFrom('online_sessions').where('node_id', '=', nodeId).where(this.#isAmong('id', some)).execute(),
    )
  }

  /** Stores tunnels with their labels, and takes over tunnels and endpoints that another node had. */
  async putTunnels(tunnels: readonly TunnelWithPairs[]): Promise<void> {
    await this.#storeTunnels(tunnels)
  }

  /** Stores tunnels with their labels, except those that another live node has by now. */
  async keepTunnels(tunnels: readonly TunnelWithPairs[]): Promise<void> {
    await this.#storeTunnels(tunnels, this.#isOwn('online_tunnels'))
  }

  /** Removes tunnels with their labels, except those that another node has by now. */
  async removeTunnels(nodeId: string, ids: readonly string[]): Promise<void> {
    await inBatches(ids.toSorted(), async (some) => {
      const gone = await this.db
        .deleteFrom('online_tunnels')
        .where('node_id', '=', nodeId)
        .where(this.#isAmong('id', some))
        .returning('id')
        .execute()
      await this.#dropLabels(gone.map(({ id }) => id))
      return gone
    })
  }

  /**
   * Locks places until this transaction ends, and returns them in order with all their holders. A place that did not exist is
   * created, without holders and with nothing served.
   */
  async lockAddresses(places: readonly string[]): Promise<StoredHeldAddress<FoundHolder>[]> {
    return inBatches([...new Set(places)].sort(), async (some) => {
      // An upsert that changes nothing creates or locks a row in one step; between two steps it could be removed.
      const rows = await this.db
        .insertInto('places')
        .columns(Object.values(addressColumns))
        .expression(
          addressesOf(
            this.facts,
            some.map((place) => ({ ...FREE, place })),
          ),
        )
        .onConflict((oc) => oc.column('place').doUpdateSet((eb) => ({ owner_id: eb.ref('places.owner_id') })))
        .returningAll()
        .execute()
      // A separate statement, so that it sees what was committed during the wait for the locks.
      const holders = await this.db
        .selectFrom('place_holders')
        .selectAll()
        .select([
          sql<number>`case when ${this.isLive('place_holders.node_id')} then 1 else 0 end`.as('is_alive'),
          sql<number>`case when ${this.mayLive('place_holders.node_id')} then 1 else 0 end`.as('may_live'),
        ])
        .where(this.#isAmong('place', some))
        .execute()
      return withHolders(
        sortedBy(rows.map(addressOf), ({ place }) => place),
        holders.map((row) => {
          const isAlive = row.is_alive === 1
          return { ...fieldsIn(holderColumns, row), isAlive, isLost: !isAlive && row.may_live === 1 }
        }),
      )
    })
  }

  /** Stores the fields of places, which must be locked. */
  async setAddresses(places: readonly StoredAddress[]): Promise<void> {
    await inBatches(
      sortedBy(places, ({ place }) => place),
      (some) =>
        this.db
          .insertInto('places')
          .columns(Object.values(addressColumns))
          .expression(addressesOf(this.facts, some))
          .onConflict((oc) => oc.column('place').doUpdateSet(excluded(addressColumns, 'place')))
          .execute(),
    )
  }

  /**
   * Stores holders of locked places, replacing rows of the same tunnels. The database refuses a slot that another tunnel has.
   */
  async putHolders(holders: readonly StoredHolder[]): Promise<void> {
    await inBatches(holders, async (some) => {
      const keys = some.map(({ place, slot, tunnelId }) => [place, slot, tunnelId])
      await this.#deleteHolders(['place', 'slot', 'tunnel_id'], keys)
      const rows = rowsOf(this.facts, holderColumns, some)
      return this.db.insertInto('place_holders').columns(Object.values(holderColumns)).expression(rows).execute()
    })
  }

  /** Removes holders, except those that have moved to another node. Locks their places. */
  async removeHolders(holders: readonly Pick<StoredHolder, 'place' | 'tunnelId' | 'nodeId'>[]): Promise<void> {
    await inBatches(
      sortedBy(holders, ({ place, tunnelId, nodeId }) => `${place}\n${tunnelId}\n${nodeId}`),
      async (some) => {
        await this.#lock(some.map(({ place }) => place))
        // By both slots that a tunnel can have, and so by the primary key: a pool may be large.
        const keys = some.flatMap(({ place, tunnelId, nodeId }) =>
          ['', tunnelId].map((slot) => [place, slot, tunnelId, nodeId]),
        )
        return this.#deleteHolders(['place', 'slot', 'tunnel_id', 'node_id'], keys)
      },
    )
  }

  /** Removes the holders of these slots, whose places must be locked. */
  async dropHolders(slots: readonly Pick<StoredHolder, 'place' | 'slot'>[]): Promise<void> {
    await inBatches(slots, (some) => {
      const keys = some.map(({ place, slot }) => [place, slot])
      return this.#deleteHolders(['place', 'slot'], keys)
    })
  }

  /** Removes the empty ones of `places`. Locks them. */
  async dropEmptyAddresses(places: readonly string[]): Promise<void> {
    await inBatches([...new Set(places)].sort(), async (some) => {
      // Locked first: a deletion that had to wait would not see holders that came meanwhile.
      await this.#lock(some)
      return this.#dropEmpty(some)
    })
  }

  /**
   * Removes up to `limit` rows of a node whose lease has expired, and the node itself last. Returns their number, not
   * counting places that become empty and are removed with them. Zero means that nothing is left, or only rows that other
   * transactions are writing at this moment. Never waits for a transaction that may wait for this one.
   */
  async sweep(nodeId: string, limit: number): Promise<number> {
    let ended = this.db
      .selectFrom('nodes')
      .select('id')
      .where('id', '=', nodeId)
      .where('expires_at', '<=', this.facts.nowMs)
    // Waits for transactions that hold the lease, and keeps the node from renewing it.
    if (this.facts.locksRows) ended = ended.forUpdate()
    if (!(await ended.executeTakeFirst())) return 0
    let removed = 0
    const parts = [
      (left: number) => this.#sweepRows('online_labels', ['pair', 'tunnel_id'], nodeId, left),
      (left: number) => this.#sweepRows('online_tunnels', ['id'], nodeId, left),
      (left: number) => this.#sweepHolders(nodeId, left),
      (left: number) => this.#sweepRows('online_sessions', ['id'], nodeId, left),
    ]
    for (const part of parts) if (removed < limit) removed += await part(limit - removed)
    if (removed >= limit || (await this.#hasRows(nodeId))) return removed
    await this.db.deleteFrom('nodes').where('id', '=', nodeId).execute()
    return removed + 1
  }

  async #sweepRows(
    table: 'online_labels' | 'online_tunnels' | 'online_sessions',
    key: readonly string[],
    nodeId: string,
    limit: number,
  ): Promise<number> {
    const columns = sql.join(key.map((name) => sql.ref(name)))
    // Two statements: PostgreSQL may run a subquery again for each row.
    const { rows } = await sql<Record<string, string>>`
      select ${columns} from ${sql.table(table)} where node_id = ${nodeId} limit ${limit} ${this.#skipLocked}
    `.execute(this.db)
    const keys = rows.map((row) => key.map((name) => row[name] ?? ''))
    await inBatches(keys, async (some) => {
      const { rows: gone } = await sql`delete from ${sql.table(table)} where ${isOneOf(key, some)}`.execute(this.db)
      return gone
    })
    return keys.length
  }

  async #sweepHolders(nodeId: string, limit: number): Promise<number> {
    const found = await this.db
      .selectFrom('place_holders')
      .select(['place', 'slot'])
      .where('node_id', '=', nodeId)
      .limit(limit)
      .execute()
    const gone = await inBatches(found, async (some) => {
      const { rows: locked } = await sql<{ place: string }>`
        select place from places where ${this.#isAmong(
          'place',
          some.map(({ place }) => place),
        )} ${this.#skipLocked}
      `.execute(this.db)
      const places = new Set(locked.map(({ place }) => place))
      const keys = some.filter(({ place }) => places.has(place)).map(({ place, slot }) => [place, slot, nodeId])
      const removed = await this.#deleteHolders(['place', 'slot', 'node_id'], keys)
      await this.#dropEmpty([...places])
      return removed
    })
    return gone.length
  }

  async #hasRows(nodeId: string): Promise<boolean> {
    const tables = ['online_labels', 'online_tunnels', 'place_holders', 'online_sessions'] as const
    for (const table of tables) {
      const row = await this.db.selectFrom(table).select('node_id').where('node_id', '=', nodeId).limit(1).execute()
      if (row.length > 0) return true
    }
    return false
  }

  /** Stores sessions that are new or for which `mayTake` holds, by default all; returns their ids. */
  #storeSessions(sessions: readonly StoredOnlineSession[], mayTake = ALWAYS): Promise<string[]> {
    return inBatches(
      sortedBy(sessions, ({ id }) => id),
      async (some) => {
        const stored = await this.db
          .insertInto('online_sessions')
          .columns(Object.values(sessionColumns))
          .expression(rowsOf(this.facts, sessionColumns, some))
          .onConflict((oc) => oc.column('id').doUpdateSet(excluded(sessionColumns, 'id')).where(mayTake))
          .returning('id')
          .execute()
        return stored.map(({ id }) => id)
      },
    )
  }

  async #storeTunnels(tunnels: readonly TunnelWithPairs[], mayTake = ALWAYS): Promise<void> {
    await inBatches(
      sortedBy(tunnels, ({ id }) => id),
      async (some) => {
        await this.#dropFormer(some)
        const stored = await this.db
          .insertInto('online_tunnels')
          .columns(Object.values(tunnelColumns))
          .expression(rowsOf(this.facts, tunnelColumns, some))
          .onConflict((oc) => oc.column('id').doUpdateSet(excluded(tunnelColumns, 'id')).where(mayTake))
          .returning('id')
          .execute()
        const ids = new Set(stored.map(({ id }) => id))
        await this.#dropLabels([...ids])
        const labels = some.flatMap(({ id, nodeId, pairs }) =>
          ids.has(id) ? [...new Set(pairs)].map((pair) => ({ pair, tunnel_id: id, node_id: nodeId })) : [],
        )
        return inBatches(labels, (few) =>
          this.db
            .insertInto('online_labels')
            .values([...few])
            .execute(),
        )
      },
    )
  }

  /**
   * In an upsert: whether the present row is this node's, or that of a node whose lease has expired. It is part of the
   * statement, since a row may move to another node between two statements.
   */
  #isOwn(table: 'online_sessions' | 'online_tunnels'): RawBuilder<SqlBool> {
    return sql<SqlBool>`(${sql.ref(`${table}.node_id`)} = excluded.node_id or not ${this.isLive(`${table}.node_id`)})`
  }

  /** Removes other tunnels that had the endpoints of these. */
  async #dropFormer(tunnels: readonly StoredOnlineTunnel[]): Promise<void> {
    const byEndpoint = new Map(tunnels.flatMap(({ endpointId, id }) => (endpointId === null ? [] : [[endpointId, id]])))
    if (byEndpoint.size === 0) return
    const holding = await this.db
      .selectFrom('online_tunnels')
      .select(['id', 'endpoint_id'])
      .where(this.#isAmong('endpoint_id', byEndpoint.keys()))
      .execute()
    const former = holding.filter(({ id, endpoint_id }) => byEndpoint.get(endpoint_id ?? '') !== id).map(({ id }) => id)
    if (former.length === 0) return
    await this.db.deleteFrom('online_tunnels').where(this.#isAmong('id', former)).execute()
    await this.#dropLabels(former)
  }

  async #dropLabels(tunnelIds: readonly string[]): Promise<void> {
    if (tunnelIds.length === 0) return
    await this.db.deleteFrom('online_labels').where(this.#isAmong('tunnel_id', tunnelIds)).execute()
  }

  async #deleteHolders(
    columns: readonly (keyof Tables['place_holders'])[],
    keys: readonly (readonly string[])[],
  ): Promise<{ place: string }[]> {
    if (keys.length === 0) return []
    return this.db.deleteFrom('place_holders').where(isOneOf(columns, keys)).returning('place').execute()
  }

  /** Locks those of `places` that exist; there may be no more of them than fit into a statement. */
  async #lock(places: readonly string[]): Promise<void> {
    if (!this.facts.locksRows) return
    await this.db
      .selectFrom('places')
      .select('place')
      .where(this.#isAmong('place', places))
      .orderBy('place')
      .forUpdate()
      .execute()
  }

  /** Removes the empty ones of `places`, which must be locked. */
  async #dropEmpty(places: readonly string[]): Promise<{ place: string }[]> {
    if (places.length === 0) return []
    return this.db
      .deleteFrom('places')
      .where(this.#isAmong('places.place', places))
      .where((eb) =>
        eb.not(
          eb.exists(eb.selectFrom('place_holders').select('slot').whereRef('place_holders.place', '=', 'places.place')),
        ),
      )
      .returning('place')
      .execute()
  }

  #isAmong(column: string, values: Iterable<string>): RawBuilder<SqlBool> {
    return this.facts.isAmong(column, [...values])
  }

  get #skipLocked(): RawBuilder<unknown> {
    return this.facts.locksRows ? sql`for update skip locked` : sql``
  }
}

/** 1 while the lease of a row of `nodes` runs, else 0. */
function runs(nowMs: RawBuilder<number>): RawBuilder<number> {
  return sql<number>`case when expires_at > ${nowMs} then 1 else 0 end`
}

/** Whether `columns` together are one of `keys`. */
function isOneOf(columns: readonly string[], keys: readonly (readonly string[])[]): RawBuilder<SqlBool> {
  const values = sql.join(keys.map((key) => sql`(${sql.join(key)})`))
  return sql<SqlBool>`(${sql.join(columns.map((name) => sql.ref(name)))}) in (values ${values})`
}

/** The set clause of an upsert that replaces all columns but the key. */
function excluded(columns: Readonly<Record<string, string>>, key: string): Record<string, RawBuilder<never>> {
  const others = Object.values(columns).filter((name) => name !== key)
  return Object.fromEntries(others.map((name) => [name, sql.ref<never>(`excluded.${name}`)]))
}

/**
 * Many rows in one parameter of a statement: an array of arrays, as JSON. With a parameter for every value, building and parsing
 * the statement would be most of the cost of writing a thousand rows. `numbers` are the columns that are not text.
 *
 * Returns the rows as a query, for an `insert`.
 */
function rowsOf<Field extends string>(
  facts: DialectFacts,
  columns: Readonly<Record<Field, string>>,
  rows: readonly Readonly<Record<NoInfer<Field>, string | number | boolean | null>>[],
  numbers: readonly Field[] = [],
): RawBuilder<unknown> {
  const fields = Object.keys(columns) as Field[] // its own keys
  const values = rows.map((row) =>
    fields.map((field) => (numbers.includes(field) && row[field] !== null ? Number(row[field]) : row[field])),
  )
  const selected = fields.map((field, i) =>
    numbers.includes(field) ? sql`cast(${valueAt(i)} as integer)` : valueAt(i),
  )
  // Without `where`, SQLite would take the `on` of an upsert for that of a join.
  return sql`select ${sql.join(selected)} from ${facts.eachOf(JSON.stringify(values))} where 1 = 1`
}

function addressesOf(facts: DialectFacts, addresses: readonly StoredAddress[]): RawBuilder<unknown> {
  return rowsOf(facts, addressColumns, addresses, ['isPooled', 'isUnnamed', 'port'])
}

/** One value of an array; its index is a literal in the statement. */
function valueAt(index: number): RawBuilder<unknown> {
  return sql`(each.value ->> ${sql.lit(index)})`
}
