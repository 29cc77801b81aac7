/** Refuses an address that an agent at another node serves; the directory checks those of this node. */
import { EDGE_NAMES, EDGE_PORTS, servedByAgent } from '../resources/hostports.ts'
import type { Claim } from '../resources/resource.ts'
import type { Reader } from '../store/reader.ts'

/** `nodeId`: this node, whose rows may be stale and are not read; undefined for a node on its own. */
export async function checkServed(reader: Reader, claims: readonly Claim[], nodeId: string | undefined): Promise<void> {
  if (nodeId === undefined) return
  const byAddress = new Map(claims.flatMap((claim) => addressesOf(claim).map((place) => [place, claim] as const)))
  if (byAddress.size === 0) return
  for (const { place, holders } of await reader.online.holders([...byAddress.keys()])) {
    const holder = holders.find((each) => each.nodeId !== nodeId)
    // Names the whole list of an edge, `hostports`, rather than one entry.
    const [field = ''] = /^\w+/.exec(byAddress.get(place)?.taken.field ?? '') ?? []
    if (holder) throw servedByAgent(`\`${field}\`: \`${addressOf(place)}\``, field, endpointOf(holder.tunnelId))
  }
}

/** The places under which an agent would hold the address; see `Reservation`. */
function addressesOf({ scope, key }: Claim): string[] {
  if (scope === EDGE_NAMES) return [`secure:${key}`, `plain:${key}`]
  return scope === EDGE_PORTS ? [`:${key}`] : []
}

function addressOf(place: string): string {
  return place.slice(place.indexOf(':') + 1)
}

/** The id of a tunnel's endpoint, which differs only in its prefix. */
function endpointOf(tunnelId: string): string {
  return `ep_${tunnelId.slice('tn_'.length)}`
}
