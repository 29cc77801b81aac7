/**
 * Looks up which names and ports are taken in the store: agents may not take those of an edge, and random choices avoid
 * reserved ones.
 */
import type { AddressHolders } from '../../model/endpoint.ts'
import { EDGE_NAMES, EDGE_PORTS } from '../resources/hostports.ts'
import { RESERVED_PORTS } from '../resources/reserved-addrs.ts'
import { RESERVED_NAMES } from '../resources/reserved-domains.ts'
import { AskedTogether } from '../store/asked-together.ts'
import { bindGatherMs } from '../store/gather-time.ts'
import type { Store } from '../store/store.ts'

/** How long a look-up may take, in milliseconds: an agent that binds waits for it. */
const LOOKUP_MS = 5000

/** The id of the holder of a key in a scope. */
type HolderOf = (scope: string, key: string) => string | undefined

export class TakenAddresses {
  readonly #names: AskedTogether<string, AddressHolders>
  readonly #ports: AskedTogether<number, AddressHolders>

  constructor(store: Store) {
    const holders = async (scopes: readonly string[], keys: readonly string[]): Promise<HolderOf> => {
      const found = await store.read((reader) => reader.holders(scopes, [...new Set(keys)]), { withinMs: LOOKUP_MS })
      const byKey = new Map(found.map(({ scope, key, holderId }) => [`${scope} ${key}`, holderId]))
      return (scope, key) => byKey.get(`${scope} ${key}`)
    }
    const together = { apartMs: bindGatherMs }
    this.#names = new AskedTogether(async (names) => {
      const holderOf = await holders(
        [EDGE_NAMES, RESERVED_NAMES],
        names.flatMap((name) => [name, ...wildcardsAbove(name)]),
      )
      return (name) => holdersOfName(name, holderOf)
    }, together)
    this.#ports = new AskedTogether(async (ports) => {
      const holderOf = await holders([EDGE_PORTS, RESERVED_PORTS], ports.map(String))
      return (port) => ({
        edgeId: holderOf(EDGE_PORTS, String(port)),
        reservationId: holderOf(RESERVED_PORTS, String(port)),
      })
    }, together)
  }

  /** The holders of a name, which must be normalised. */
  holdersOfName(name: string): Promise<AddressHolders> {
    return this.#names.ask(name)
  }

  /** The holders of a TCP port. */
  holdersOfPort(port: number): Promise<AddressHolders> {
    return this.#ports.ask(port)
  }
}

function holdersOfName(name: string, holderOf: HolderOf): AddressHolders {
  const holderAt = (key: string): string | undefined => holderOf(EDGE_NAMES, key) ?? holderOf(RESERVED_NAMES, key)
  const nearest = wildcardsAbove(name).find((key) => holderAt(key) !== undefined)
  const wildcard = nearest !== undefined && { name: nearest, holderId: holderAt(nearest) ?? '' }
  return {
    edgeId: holderOf(EDGE_NAMES, name),
    reservationId: holderOf(RESERVED_NAMES, name),
    ...(wildcard && { wildcard }),
  }
}

/** The wildcards that cover `name`, nearest first; one covers everything below it, at any depth. */
function wildcardsAbove(name: string): string[] {
  const wildcards: string[] = []
  for (let dot = name.indexOf('.'); dot > 0; dot = name.indexOf('.', dot + 1)) wildcards.push(`*${name.slice(dot)}`)
  // A wildcard does not cover itself.
  return wildcards.filter((wildcard) => wildcard !== name)
}
