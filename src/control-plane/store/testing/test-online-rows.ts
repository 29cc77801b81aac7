/** Nodes, sessions, tunnels and places for tests of what is online. */
import type { StoredAddress, StoredHolder, StoredNode, StoredOnlineSession } from '../online-rows.ts'
import type { TunnelWithPairs } from '../online-writer.ts'
import type { Store } from '../store.ts'

/** A lease that does not expire during any test. */
export const LEASE_MS = 600_000

export function nodeAt(id: string, given: Partial<StoredNode> = {}): StoredNode {
  return {
    id,
    name: id,
    address: '192.0.2.1:4443',
    agentAddresses: ['a.example:443', '192.0.2.1:443'],
    region: 'eu',
    version: '1.2.3',
    since: '2026-01-02T03:04:05Z',
    isLeaving: false,
    sessions: 0,
    ...given,
  }
}

export function sessionAt(nodeId: string, id: string): StoredOnlineSession {
  return { id, nodeId, planeId: 'p1', credentialId: 'cr_1', certificateId: null, fields: '{"ip":"192.0.2.7"}' }
}

export function tunnelAt(nodeId: string, id: string, given: Partial<TunnelWithPairs> = {}): TunnelWithPairs {
  return { id, nodeId, planeId: 'p1', sessionId: `ts_${id}`, endpointId: null, fields: '{}', pairs: [], ...given }
}

export function placeAt(place: string, given: Partial<StoredAddress> = {}): StoredAddress {
  const served = { ownerId: 'usr_1', isPooled: false, digest: 'd', isUnnamed: true, port: null, config: '{"a":1}' }
  return { place, ...served, ...given }
}

export function holderAt(nodeId: string, place: string, tunnelId: string, slot = ''): StoredHolder {
  return { place, slot, tunnelId, sessionId: `ts_${tunnelId}`, nodeId, planeId: 'p1', version: 'v1' }
}

/** Stores nodes whose lease runs. */
export async function startNodes(store: Store, ...ids: readonly string[]): Promise<void> {
  await store.write(async ({ online }) => {
    for (const id of ids) await online.renew(nodeAt(id), LEASE_MS)
  })
}

/** Removes all that a node has, a few rows at a time; returns how many rows went each time. */
export async function sweepAll(store: Store, nodeId: string, limit: number): Promise<number[]> {
  const swept: number[] = []
  for (;;) {
    const removed = await store.write(({ online }) => online.sweep(nodeId, limit))
    if (removed === 0) return swept
    swept.push(removed)
  }
}
