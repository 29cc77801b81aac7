/**
 * Which names and ports are taken in the store: agents may not take those of an edge, and random choices avoid
 * reservations.
 */
import type { AddressHolders } from '../model/endpoint.ts'
import { EDGE_NAMES, EDGE_PORTS } from '../resources/hostports.ts'
import { RESERVED_PORTS } from '../resources/reserved-addrs.ts'
import { RESERVED_NAMES } from '../resources/reserved-domains.ts'
import type { Store } from '../store/store.ts'

/** Who holds a name, normalised. */
export async function holdersOfName(store: Store, name: string): Promise<AddressHolders> {
  const above = wildcardsAbove(name)
  return store.read(async (reader) => {
    const found = await reader.holders([EDGE_NAMES, RESERVED_NAMES], [name, ...above])
    const holderOf = (scope: string, key: string) =>
      found.find((each) => each.scope === scope && each.key === key)?.holderId
    const nearest = above.find((key) => found.some((each) => each.key === key))
    const wildcard = nearest !== undefined && {
      name: nearest,
      holderId: holderOf(EDGE_NAMES, nearest) ?? holderOf(RESERVED_NAMES, nearest) ?? '',
    }
    return {
      edgeId: holderOf(EDGE_NAMES, name),
      reservationId: holderOf(RESERVED_NAMES, name),
      ...(wildcard && { wildcard }),
    }
  })
}

/** The wildcards that cover `name`, nearest first; one covers everything below it, at any depth. */
function wildcardsAbove(name: string): string[] {
  const wildcards: string[] = []
  for (let dot = name.indexOf('.'); dot > 0; dot = name.indexOf('.', dot + 1)) wildcards.push(`*${name.slice(dot)}`)
  // A wildcard does not cover itself.
  return wildcards.filter((wildcard) => wildcard !== name)
}

/** Who holds a TCP port. */
export function holdersOfPort(store: Store, port: number): Promise<AddressHolders> {
  return holders(store, EDGE_PORTS, RESERVED_PORTS, String(port))
}

function holders(store: Store, edgeScope: string, reservedScope: string, key: string): Promise<AddressHolders> {
  return store.read(async (reader) => ({
    edgeId: await reader.holder(edgeScope, key),
    reservationId: await reader.holder(reservedScope, key),
  }))
}
