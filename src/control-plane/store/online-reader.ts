/** Reads what is online in a cluster. */
import { type RawBuilder, type SqlBool, sql } from 'kysely'
import type { PresencePage } from '../../model/presence.ts'
import { inBatches } from './batches.ts'
import { Queries } from './dialect.ts'
import {
  addressOf,
  type DeadNode,
  fieldsIn,
  holderColumns,
  type LiveNode,
  nodeOf,
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

/** Which places with a port to read, in the order of their ports. */
interface PortPage {
  /** Only those after this one, which need not exist. */
  readonly after?: { readonly port: number; readonly place: string } | undefined
  readonly limit: number
}

const keyed = {
  sessions: { table: 'online_sessions', key: 'id' },
  tunnels: { table: 'online_tunnels', key: 'id' },
  places: { table: 'place_holders', key: 'place' },
} as const

/** How many rows of each label are counted at first, and the factor for the next try if all labels have more. */
const COUNTED = { first: 64, growth: 16 }

/** Sorts after every id. */
const AFTER_ALL_IDS = '~'

/** The end of a lease that its node has given up. */
export const LEFT = 0

/**
 * What a node has counts only while its lease runs, by the database's clock. Only its places stay until it is swept, since it
 * may still serve them.
 */
export class OnlineReader extends Queries {
  /** The nodes whose lease runs, by name. */
  async nodes(): Promise<LiveNode[]> {
    const rows = await this.db
      .selectFrom('nodes')
      .selectAll()
      .select(sql<number>`expires_at - ${this.facts.nowMs}`.as('lease_ms'))
      .execute()
    return rows
      .filter(({ lease_ms }) => lease_ms > 0)
      .map((row) => ({ ...nodeOf(row), leaseMs: row.lease_ms }))
      .sort((a, b) => (a.name === b.name ? order(a.id, b.id) : order(a.name, b.name)))
  }

  /**
   * Makes the lease of a node run for `leaseMs` from now, if it still runs; returns whether it does. One statement outside any
   * transaction, so that no lock waits for this process.
   */
  async prolong(node: StoredNode, leaseMs: number): Promise<boolean> {
    const { id, ...row } = nodeRow(node)
    const { numUpdatedRows } = await this.db
      .updateTable('nodes')
      .set({ ...row, expires_at: sql<number>`${this.facts.nowMs} + ${leaseMs}` })
      .where('id', '=', id)
      .where('expires_at', '>', this.facts.nowMs)
      .executeTakeFirst()
    return numUpdatedRows > 0n
  }

  /** Identifies the run of the database server; another server may lack the last writes. */
  async server(): Promise<string> {
    const { rows } = await sql<{ server: string }>`select ${this.facts.server} as server`.execute(this.db)
    return rows[0]?.server ?? ''
  }

  /** The nodes whose lease has expired and that still have a row, by their ids. */
  async deadNodes(): Promise<DeadNode[]> {
    const rows = await this.db
      .selectFrom('nodes')
      .selectAll()
      .where('expires_at', '<=', this.facts.nowMs)
      .orderBy('id')
      .execute()
    return rows.map((row) => ({ ...nodeOf(row), hasLeft: row.expires_at <= LEFT }))
  }

  /** The held ones of `places`, with their holders. */
  async holders(places: readonly string[]): Promise<StoredHeldAddress[]> {
    return inBatches(places, (some) => this.#held(sql`place in (${sql.join(some)})`))
  }

  /** The held ones of `ports`, with their holders. */
  async holdersOfPorts(ports: readonly number[]): Promise<StoredHeldAddress[]> {
    return inBatches(ports, (some) => this.#held(sql`port in (${sql.join(some)})`))
  }

  /** All held places with a port, by port. */
  async ports({ after, limit }: PortPage): Promise<StoredHeldAddress[]> {
    const beyond = after ? sql`(port, place) > (${after.port}, ${after.place})` : sql`port is not null`
    const held = await this.#held(beyond, sql`order by port, place limit ${limit}`)
    return held.sort((a, b) => (a.port === b.port ? order(a.place, b.place) : Number(a.port) - Number(b.port)))
  }

  /** The tunnels that have all of these labels, oldest first. The cost is that of the rows of the rarest label. */
  async tunnelsWith(pairs: readonly string[], limit: number): Promise<StoredOnlineTunnel[]> {
    const distinct = [...new Set(pairs)]
    const rarest = await this.#rarest(distinct)
    if (rarest === undefined) return []
    let found = this.db
      .selectFrom('online_labels as label')
      .innerJoin('online_tunnels', 'online_tunnels.id', 'label.tunnel_id')
      .selectAll('online_tunnels')
      .where('label.pair', '=', rarest)
      .where(this.isLive('online_tunnels.node_id'))
    for (const other of distinct) {
      if (other === rarest) continue
      // A count, since a database may turn an `exists` around and begin with all rows of the other label.
      found = found.where(
        sql<SqlBool>`(select count(*) from online_labels as other
          where other.pair = ${other} and other.tunnel_id = label.tunnel_id) = 1`,
      )
    }
    const rows = await found.orderBy('label.tunnel_id').limit(limit).execute()
    return rows.map((row) => fieldsIn(tunnelColumns, row))
  }

  /** The keys of a node's rows, in order. */
  async keysAt(
    nodeId: string,
    kind: 'sessions' | 'tunnels' | 'places',
    { after, limit }: { readonly after: string; readonly limit: number },
  ): Promise<string[]> {
    const { table, key } = keyed[kind]
    const column = sql.ref(key)
    const { rows } = await sql<{ key: string }>`
      select distinct ${column} as key from ${sql.table(table)} where node_id = ${nodeId} and ${column} > ${after}
      order by ${column} limit ${limit}
    `.execute(this.db)
    return rows.map((row) => row.key)
  }

  /** A page of sessions, newest first. */
  async sessions(page: PresencePage): Promise<StoredOnlineSession[]> {
    return (await this.#page('online_sessions', 'id', page)).map((row) => fieldsIn(sessionColumns, row))
  }

  async session(id: string): Promise<StoredOnlineSession | undefined> {
    return (await this.sessionsById([id]))[0]
  }

  /** A page of tunnels, newest first. */
  async tunnels(page: PresencePage): Promise<StoredOnlineTunnel[]> {
    return (await this.#page('online_tunnels', 'id', page)).map((row) => fieldsIn(tunnelColumns, row))
  }

  async tunnel(id: string): Promise<StoredOnlineTunnel | undefined> {
    return (await this.#tunnelsBy('id', [id]))[0]
  }

  /** The sessions among `ids` that are online. */
  async sessionsById(ids: readonly string[]): Promise<StoredOnlineSession[]> {
    return (await this.#live('online_sessions', 'id', ids)).map((row) => fieldsIn(sessionColumns, row))
  }

  /** All tunnels of some sessions, oldest first. */
  async tunnelsOf(sessionIds: readonly string[]): Promise<StoredOnlineTunnel[]> {
    return (await this.#tunnelsBy('session_id', sessionIds)).sort((a, b) => order(a.id, b.id))
  }

  /** A page of the tunnels that have an endpoint, by the ids of their endpoints, newest first. */
  async endpoints(page: PresencePage): Promise<StoredOnlineTunnel[]> {
    return (await this.#page('online_tunnels', 'endpoint_id', page)).map((row) => fieldsIn(tunnelColumns, row))
  }

  /** The tunnel behind an endpoint. */
  async endpoint(id: string): Promise<StoredOnlineTunnel | undefined> {
    return (await this.#tunnelsBy('endpoint_id', [id]))[0]
  }

  /** Whether the lease of the node in this column runs. */
  protected isLive(nodeId: `${keyof Tables}.node_id`): RawBuilder<SqlBool> {
    return this.#expiresAfter(nodeId, this.facts.nowMs)
  }

  /** Whether the node in this column has its places: its lease runs, or was lost and not given up. */
  protected mayLive(nodeId: `${keyof Tables}.node_id`): RawBuilder<SqlBool> {
    return this.#expiresAfter(nodeId, sql.lit(LEFT))
  }

  #expiresAfter(nodeId: `${keyof Tables}.node_id`, timeMs: RawBuilder<number>): RawBuilder<SqlBool> {
    return sql<SqlBool>`exists (
      select 1 from nodes where nodes.id = ${sql.ref(nodeId)} and nodes.expires_at > ${timeMs})`
  }

  async #tunnelsBy(
    column: 'id' | 'endpoint_id' | 'session_id',
    values: readonly string[],
  ): Promise<StoredOnlineTunnel[]> {
    return (await this.#live('online_tunnels', column, values)).map((row) => fieldsIn(tunnelColumns, row))
  }

  /** The rows of live nodes whose column has one of `values`. */
  #live<Table extends 'online_sessions' | 'online_tunnels'>(
    table: Table,
    column: string,
    values: readonly string[],
  ): Promise<Tables[Table][]> {
    return inBatches(values, async (some) => {
      const { rows } = await sql<Tables[Table]>`
        select * from ${sql.table(table)} where ${sql.ref(column)} in (${sql.join(some)}) and ${this.isLive(`${table}.node_id`)}
      `.execute(this.db)
      return rows
    })
  }

  /**
   * One statement, so that a place never comes with a configuration older than its holders. The configuration may be
   * large, so it comes once for each place, not once for each holder. With `exists` instead of `= 1`, PostgreSQL might read
   * all holders first.
   */
  async #held(which: RawBuilder<unknown>, page = sql``): Promise<StoredHeldAddress[]> {
    const none = sql`cast(null as text)`
    const { rows } = await sql<HeldRow>`
      with held as (
        select * from places where ${which} and (
          select 1 from place_holders
          where place_holders.place = places.place and ${this.mayLive('place_holders.node_id')} limit 1
        ) = 1 ${page}
      )
      select place, owner_id, is_pooled, digest, is_unnamed, port, config,
        ${none} as slot, ${none} as tunnel_id, ${none} as session_id, ${none} as node_id, ${none} as plane_id,
        ${none} as version
      from held
      union all
      select place_holders.place, null, null, null, null, null, null,
        place_holders.slot, place_holders.tunnel_id, place_holders.session_id,
        place_holders.node_id, place_holders.plane_id, place_holders.version
      from held cross join place_holders
      where place_holders.place = held.place and ${this.mayLive('place_holders.node_id')}
    `.execute(this.db)
    const places: StoredAddress[] = []
    const holders: StoredHolder[] = []
    for (const { config, ...row } of rows) {
      if (config === null) holders.push(fieldsIn(holderColumns, row))
      else places.push(addressOf({ ...row, config }))
    }
    // A node may be swept during the statement.
    return withHolders(places, holders).filter(({ holders: left }) => left.length > 0)
  }

  /**
   * Reads a page of each live node, and returns the first of these rows. Without the nodes, a page would have to skip every row
   * of a lost node, which may be a million.
   */
  async #page<Table extends 'online_sessions' | 'online_tunnels'>(
    table: Table,
    key: 'id' | 'endpoint_id',
    { beforeId, limit }: PresencePage,
  ): Promise<Tables[Table][]> {
    const live = await this.db.selectFrom('nodes').select('id').where('expires_at', '>', this.facts.nowMs).execute()
    if (live.length === 0) return []
    const column = sql.ref(key)
    const before = beforeId ?? AFTER_ALL_IDS
    // Not `node_id = …`: PostgreSQL would take the order from an index of the key alone, and skip the rows of other nodes.
    const ofNodes = live.map(
      ({ id }) => sql`select * from (
        select * from ${sql.table(table)} where node_id >= ${id} and (node_id, ${column}) < (${id}, ${before})
        order by node_id desc, ${column} desc limit ${limit}
      ) as of_node`,
    )
    const { rows } = await sql<Tables[Table]>`
      select * from (${sql.join(ofNodes, sql` union all `)}) as of_all order by ${column} desc limit ${limit}
    `.execute(this.db)
    return rows
  }

  /** The label with the fewest rows; undefined when one of them has none. */
  async #rarest(pairs: readonly string[]): Promise<string | undefined> {
    for (let most = COUNTED.first; pairs.length > 0; most *= COUNTED.growth) {
      const counts = pairs.map(
        (pair) => sql`select cast(${pair} as text) as pair, (
          select count(*) from (select 1 from online_labels where pair = ${pair} limit ${most}) as counted) as count`,
      )
      const { rows } = await sql<{ pair: string; count: number }>`${sql.join(counts, sql` union all `)}`.execute(
        this.db,
      )
      const [rarest] = rows.sort((a, b) => a.count - b.count)
      if (!rarest || rarest.count === 0) return undefined
      if (pairs.length === 1 || rarest.count < most) return rarest.pair
    }
    return undefined
  }
}

/** A place, or when `config` is null a holder of one. */
type HeldRow = Omit<Tables['places'], 'config'> & Tables['place_holders'] & { readonly config: string | null }

function order(a: string, b: string): number {
  return a < b ? -1 : Number(a > b)
}
