/** The stored form of what is online in a cluster: nodes, sessions, tunnels, and the places that tunnels hold. */
import type { Selectable } from 'kysely'
import type { Tables } from './tables.ts'

/** A node as it describes itself. */
export interface StoredNode {
  readonly id: string
  readonly name: string
  /** Where other nodes reach it. */
  readonly address: string
  readonly agentAddresses: readonly string[]
  readonly region: string
  readonly version: string
  /** When it started, as in RFC 3339. */
  readonly since: string
  readonly isLeaving: boolean
  /** Number of its sessions. */
  readonly sessions: number
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

export interface StoredOnlineTunnel {
  readonly id: string
  readonly nodeId: string
  readonly planeId: string
  readonly sessionId: string
  readonly endpointId: string | null
  /** JSON, as its node wrote it. */
  readonly fields: string
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

export function sessionOf(row: Row<'online_sessions'>): StoredOnlineSession {
  const { id, node_id, plane_id, credential_id, certificate_id, fields } = row
  return {
    id,
    nodeId: node_id,
    planeId: plane_id,
    credentialId: credential_id,
    certificateId: certificate_id,
    fields,
  }
}

export function sessionRow(session: StoredOnlineSession): Row<'online_sessions'> {
  const { id, nodeId, planeId, credentialId, certificateId, fields } = session
  return {
    id,
    node_id: nodeId,
    plane_id: planeId,
    credential_id: credentialId,
    certificate_id: certificateId,
    fields,
  }
}

export function tunnelOf(row: Row<'online_tunnels'>): StoredOnlineTunnel {
  const { id, node_id, plane_id, session_id, endpoint_id, fields } = row
  return { id, nodeId: node_id, planeId: plane_id, sessionId: session_id, endpointId: endpoint_id, fields }
}

export function tunnelRow(tunnel: StoredOnlineTunnel): Row<'online_tunnels'> {
  const { id, nodeId, planeId, sessionId, endpointId, fields } = tunnel
  return { id, node_id: nodeId, plane_id: planeId, session_id: sessionId, endpoint_id: endpointId, fields }
}

export function placeOf(row: Row<'places'>): StoredAddress {
  const { place, owner_id, is_pooled, digest, is_unnamed, port, config } = row
  return { place, ownerId: owner_id, isPooled: is_pooled === 1, digest, isUnnamed: is_unnamed === 1, port, config }
}

export function addressRow({
  place,
  ownerId,
  isPooled,
  digest,
  isUnnamed,
  port,
  config,
}: StoredAddress): Row<'places'> {
  return {
    place,
    owner_id: ownerId,
    is_pooled: Number(isPooled),
    digest,
    is_unnamed: Number(isUnnamed),
    port,
    config,
  }
}

export function holderOf(row: Row<'place_holders'>): StoredHolder {
  const { place, slot, tunnel_id, session_id, node_id, plane_id, version } = row
  return { place, slot, tunnelId: tunnel_id, sessionId: session_id, nodeId: node_id, planeId: plane_id, version }
}

export function holderRow(holder: StoredHolder): Row<'place_holders'> {
  const { place, slot, tunnelId, sessionId, nodeId, planeId, version } = holder
  return { place, slot, tunnel_id: tunnelId, session_id: sessionId, node_id: nodeId, plane_id: planeId, version }
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
