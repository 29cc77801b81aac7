/** Refuses an edge on an address that an agent at another node serves; for those at this node the directory answers. */
import { EDGE_NAMES, EDGE_PORTS, servedByAgent } from '../resources/hostports.ts'
import type { Claim } from '../resources/resource.ts'
import type { Reader } from '../store/reader.ts'

/** `nodeId`: this node, whose rows may be a moment old; undefined for one on its own. */
export async function checkServed(reader: Reader, claims: readonly Claim[], nodeId: string | undefined): Promise<void> {
  if (nodeId === undefined) return
  const places = claims.flatMap(placesOf)
  if (places.length === 0) return
  for (const { place, holders } of await reader.online.holders(places)) {
    const holder = holders.find((each) => each.nodeId !== nodeId)
    if (holder) throw servedByAgent(`\`hostports\`: \`${addressOf(place)}\``, 'hostports', endpointOf(holder.tunnelId))
  }
}

/** Where an agent would have the address; see `PlaceClaim`. */
function placesOf({ scope, key }: Claim): string[] {
  if (scope === EDGE_NAMES) return [`secure:${key}`, `plain:${key}`]
  return scope === EDGE_PORTS ? [`:${key}`] : []
}

function addressOf(place: string): string {
  return place.slice(place.indexOf(':') + 1)
}

/** An endpoint has the id of its tunnel, behind its own prefix. */
function endpointOf(tunnelId: string): string {
  return `ep_${tunnelId.slice('tn_'.length)}`
}
