/** Addresses that are taken, from the moment of their claim: by one tunnel each, or by the tunnels of a pool. */
import { type PoolDifference, poolDifference, slotOf } from '../model/pool.ts'
import type { PlaceClaim } from '../planes/port.ts'

/** An address that is taken, or a part in the pool that has it. */
export interface HeldPlace extends PlaceClaim {
  readonly planeId: string
}

export class HeldPlaces {
  readonly #bySlot = new Map<string, HeldPlace>()
  readonly #byPlace = new Map<string, Set<HeldPlace>>()
  readonly #byEndpoint = new Map<string, HeldPlace>()

  values(): Iterable<HeldPlace> {
    return this.#bySlot.values()
  }

  /** All that are held. */
  places(): Iterable<string> {
    return this.#byPlace.keys()
  }

  /** Who has what this one asks for: its address, or its part in the pool. */
  get(claim: Pick<PlaceClaim, 'place' | 'tunnelId' | 'pool'>): HeldPlace | undefined {
    return this.#bySlot.get(slotOf(claim))
  }

  /** Everybody who has a place: several in a pool. */
  at(place: string): readonly HeldPlace[] {
    return [...(this.#byPlace.get(place) ?? [])]
  }

  /** Whether it is still held in this very way. */
  has(held: HeldPlace): boolean {
    return this.get(held) === held
  }

  endpoint(id: string): HeldPlace | undefined {
    return this.#byEndpoint.get(id)
  }

  /** Why a claim cannot be granted: what keeps it from sharing the place with somebody else. */
  difference(claim: PlaceClaim): PoolDifference | undefined {
    for (const held of this.at(claim.place)) {
      if (isSuccessor(claim, held)) continue
      const difference = poolDifference(claim, held)
      if (difference !== undefined) return difference
    }
    return undefined
  }

  /** Those that end when a claim is granted: what the same agent had there before. */
  replaced(claim: PlaceClaim): readonly HeldPlace[] {
    return this.at(claim.place).filter((held) => isSuccessor(claim, held))
  }

  add(held: HeldPlace): void {
    const before = this.get(held)
    if (before) this.delete(before)
    this.#bySlot.set(slotOf(held), held)
    this.#byPlace.set(held.place, (this.#byPlace.get(held.place) ?? new Set()).add(held))
    this.#byEndpoint.set(endpointIdOf(held), held)
  }

  delete(held: HeldPlace): void {
    if (this.has(held)) this.#bySlot.delete(slotOf(held))
    const sharing = this.#byPlace.get(held.place)
    sharing?.delete(held)
    if (sharing?.size === 0) this.#byPlace.delete(held.place)
    const id = endpointIdOf(held)
    if (this.#byEndpoint.get(id) === held) this.#byEndpoint.delete(id)
  }
}

/** The id of a tunnel's own endpoint, which in a pool is not that of what is served there. */
export function endpointIdOf({ config, tunnelId, pool }: Pick<PlaceClaim, 'config' | 'tunnelId' | 'pool'>): string {
  return pool ? `ep_${tunnelId.slice('tn_'.length)}` : config.id
}

/** The same tunnel, or one of the same session in its place; two of one session may be in a pool, beside each other. */
function isSuccessor(claim: PlaceClaim, held: HeldPlace): boolean {
  if (held.tunnelId === claim.tunnelId) return true
  return held.sessionId === claim.sessionId && !(held.pool && claim.pool)
}
