/** Which names and ports are spoken for in the store: agents may not take what an edge has, and random choices keep clear of reservations. */
import { EDGE_NAMES, EDGE_PORTS } from '../resources/hostports.ts'
import { RESERVED_PORTS } from '../resources/reserved-addrs.ts'
import { RESERVED_NAMES } from '../resources/reserved-domains.ts'
import type { Store } from '../store/store.ts'

export interface Holders {
  /** The edge that stands on it. */
  readonly edgeId: string | undefined
  /** The reserved domain or reserved address that keeps it. */
  readonly reservationId: string | undefined
}

/** Who holds a name, normalised. */
export function holdersOfName(store: Store, name: string): Promise<Holders> {
  return holders(store, EDGE_NAMES, RESERVED_NAMES, name)
}

/** Who holds a TCP port. */
export function holdersOfPort(store: Store, port: number): Promise<Holders> {
  return holders(store, EDGE_PORTS, RESERVED_PORTS, String(port))
}

function holders(store: Store, edgeScope: string, reservedScope: string, key: string): Promise<Holders> {
  return store.read(async (reader) => ({
    edgeId: await reader.holder(edgeScope, key),
    reservationId: await reader.holder(reservedScope, key),
  }))
}
