/** The stored form of what is online in a cluster: nodes, sessions, tunnels, and the places that tunnels hold. */
import type { Selectable } from 'kysely'
import type { PresentNode } from '../../model/presence.ts'
import type { Tables } from './tables.ts'

/** A node as it describes itself. */
export interface StoredNode
  extends Pick<PresentNode, 'id' | 'name' | 'address' | 'region' | 'version' | 'since' | 'sessions'> {
  readonly agentAddresses: readonly string[]
  readonly isLeaving: boolean
}

export interface LiveNode extends StoredNode {
  /** What is left of its lease, in milliseconds. */
  readonly leaseMs: number
}

export interface DeadNode extends StoredNode {
  /** It gave its lease up; otherwise the lease was lost, and the node may live on and have its places (D56). */
  readonly hasLeft: boolean
}

type Row<Table extends keyof Tables> = Selectable<Tables[Table]>

/** The name of the field for a column: `nodeId` for `node_id`. */
type FieldOf<Column extends string> = Column extends `${infer First}_${infer Rest}`
  ? `${First}${Capitalize<FieldOf<Rest>>}`
  : Column

/** A row of a table, by the fields of what is stored there. */
type Stored<Table extends keyof Tables> = {
  readonly [Column in keyof Row<Table> & string as FieldOf<Column>]: Row<Table>[Column]
}

export type StoredOnlineSession = Stored<'online_sessions'>
export type StoredOnlineTunnel = Stored<'online_tunnels'>
export type StoredHolder = Stored<'place_holders'>

/** A public address and what is served there. */
export interface StoredAddress extends Omit<Stored<'places'>, 'isPooled' | 'isUnnamed'> {
  readonly isPooled: boolean
  readonly isUnnamed: boolean
}

/** A place with its holders, in the order of their slots. */
export interface StoredHeldAddress<Holder extends StoredHolder = StoredHolder> extends StoredAddress {
  readonly holders: readonly Holder[]
}

export function nodeOf(row: Omit<Row<'nodes'>, 'expires_at'>): StoredNode {
  const { agent_addresses, is_leaving, id, name, address, region, version, since, sessions } = row
  const agentAddresses: string[] = JSON.parse(agent_addresses)
  return { id, name, address, agentAddresses, region, version, since, isLeaving: is_leaving === 1, sessions }
}

export function nodeRow({ agentAddresses, isLeaving, ...rest }: StoredNode): Omit<Row<'nodes'>, 'expires_at'> {
  return { ...rest, agent_addresses: JSON.stringify(agentAddresses), is_leaving: Number(isLeaving) }
}

/** Columns of a table, by the fields of what is stored there. */
function columnsOf<const Column extends string>(columns: readonly Column[]) {
  const fieldOf = (column: string) => column.replaceAll(/_(.)/g, (_, first: string) => first.toUpperCase())
  const byField: unknown = Object.fromEntries(columns.map((column) => [fieldOf(column), column]))
  return byField as { readonly [Each in Column as FieldOf<Each>]: Each } // one for each column
}

export const sessionColumns = columnsOf(['id', 'node_id', 'plane_id', 'credential_id', 'certificate_id', 'fields'])
export const tunnelColumns = columnsOf(['id', 'node_id', 'plane_id', 'session_id', 'endpoint_id', 'fields'])
export const addressColumns = columnsOf(['place', 'owner_id', 'is_pooled', 'digest', 'is_unnamed', 'port', 'config'])
export const holderColumns = columnsOf(['place', 'slot', 'tunnel_id', 'session_id', 'node_id', 'plane_id', 'version'])

type Fields = Readonly<Record<string, string>>
type FieldsOf<Names extends Fields, From> = { readonly [Field in keyof Names]: From[Names[Field] & keyof From] }
export function fieldsIn<const Names extends Fields, From extends object>(
  names: Names,
  row: From,
): FieldsOf<Names, From> {
  const values = row as Readonly<Record<string, unknown>>
  const fields = Object.entries(names).map(([field, column]) => [field, values[column]])
  return Object.fromEntries(fields) as FieldsOf<Names, From> // one value for each name
}

export function addressOf(row: Row<'places'>): StoredAddress {
  return { ...fieldsIn(addressColumns, row), isPooled: row.is_pooled === 1, isUnnamed: row.is_unnamed === 1 }
}

/** Joins each place with its holders, and keeps the order of the places. */
export function withHolders<Holder extends StoredHolder>(
  places: Iterable<StoredAddress>,
  holders: Iterable<Holder>,
): StoredHeldAddress<Holder>[] {
  const held = new Map<string, StoredHeldAddress<Holder> & { readonly holders: Holder[] }>()
  for (const place of places) held.set(place.place, { ...place, holders: [] })
  for (const holder of holders) held.get(holder.place)?.holders.push(holder)
  for (const each of held.values()) each.holders.sort((a, b) => (a.slot < b.slot ? -1 : 1))
  return [...held.values()]
}
