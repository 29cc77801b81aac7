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

export interface StoredOnlineSession {
  readonly id: string
  readonly nodeId: string
  readonly planeId: string
  readonly credentialId: string
  readonly certificateId: string | null
  /** JSON, as its node wrote it. */
  readonly fields: string
}

export interface StoredOnlineTunnel extends Pick<StoredOnlineSession, 'id' | 'nodeId' | 'planeId' | 'fields'> {
  readonly sessionId: string
  readonly endpointId: string | null
}

/** A public address and what is served there. */
export interface StoredAddress {
  readonly place: string
  readonly ownerId: string
  readonly isPooled: boolean
  readonly digest: string
  readonly isUnnamed: boolean
  readonly port: number | null
  /** JSON, as its node wrote it. */
  readonly config: string
}

export interface StoredHolder {
  readonly place: string
  /** Empty when one tunnel has the place alone; in a pool, the tunnel's id. Each slot of a place has one holder. */
  readonly slot: string
  readonly tunnelId: string
  readonly sessionId: string
  readonly nodeId: string
  readonly planeId: string
  /** New each time that a tunnel gets the place. */
  readonly version: string
}

/** A place with its holders, in the order of their slots. */
export interface StoredHeldAddress<Holder extends StoredHolder = StoredHolder> extends StoredAddress {
  readonly holders: readonly Holder[]
}

type Row<Table extends keyof Tables> = Selectable<Tables[Table]>

export function nodeOf(row: Omit<Row<'nodes'>, 'expires_at'>): StoredNode {
  const { agent_addresses, is_leaving, id, name, address, region, version, since, sessions } = row
  const agentAddresses: string[] = JSON.parse(agent_addresses)
  return { id, name, address, agentAddresses, region, version, since, isLeaving: is_leaving === 1, sessions }
}

export function nodeRow({ agentAddresses, isLeaving, ...rest }: StoredNode): Omit<Row<'nodes'>, 'expires_at'> {
  return { ...rest, agent_addresses: JSON.stringify(agentAddresses), is_leaving: Number(isLeaving) }
}

/** The columns of a table, by the fields of what is stored there. */
type Columns<Table extends keyof Tables> = Readonly<Record<string, keyof Row<Table>>>

export const sessionColumns = {
  id: 'id',
  nodeId: 'node_id',
  planeId: 'plane_id',
  credentialId: 'credential_id',
  certificateId: 'certificate_id',
  fields: 'fields',
} as const satisfies Columns<'online_sessions'>

export const tunnelColumns = {
  id: 'id',
  nodeId: 'node_id',
  planeId: 'plane_id',
  sessionId: 'session_id',
  endpointId: 'endpoint_id',
  fields: 'fields',
} as const satisfies Columns<'online_tunnels'>

export const addressColumns = {
  place: 'place',
  ownerId: 'owner_id',
  isPooled: 'is_pooled',
  digest: 'digest',
  isUnnamed: 'is_unnamed',
  port: 'port',
  config: 'config',
} as const satisfies Columns<'places'>

export const holderColumns = {
  place: 'place',
  slot: 'slot',
  tunnelId: 'tunnel_id',
  sessionId: 'session_id',
  nodeId: 'node_id',
  planeId: 'plane_id',
  version: 'version',
} as const satisfies Columns<'place_holders'>

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
