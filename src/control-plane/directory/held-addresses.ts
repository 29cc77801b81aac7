/** Addresses that are taken, from the moment of their claim: each by one tunnel, or by the tunnels of a pool. */
import { Groups } from '../../lib/multi-map.ts'
import type { Reservation } from '../../link/planes/plane-calls.ts'
import { type PoolDifference, poolDifference, slotOf } from '../../model/pool.ts'

/** A taken address, or a membership in the pool that has it. */
export interface HeldAddress extends Reservation {
  readonly planeId: string
}

/** A claim, and the plane that makes it. */
type Wanted = Reservation & Partial<Pick<HeldAddress, 'planeId'>>

export class HeldAddresses {
  readonly #bySlot = new Map<string, HeldAddress>()
  readonly #byAddress = new Groups<HeldAddress>()
  readonly #byEndpoint = new Map<string, HeldAddress>()

  values(): Iterable<HeldAddress> {
    return this.#bySlot.values()
  }

  /** All places that are held. */
  addresses(): Iterable<string> {
    return this.#byAddress.keys()
  }

  /** The holder of the slot that a claim asks for: the address, or its membership in the pool. */
  get(reservation: Pick<Reservation, 'place' | 'tunnelId' | 'pool'>): HeldAddress | undefined {
    return this.#bySlot.get(slotOf(reservation))
  }

  /** All holders of a place; several in a pool. */
  at(place: string): readonly HeldAddress[] {
    return [...this.#byAddress.get(place)]
  }

  /** Whether this very holder still has its place. */
  has(held: HeldAddress): boolean {
    return this.get(held) === held
  }

  endpoint(id: string): HeldAddress | undefined {
    return this.#byEndpoint.get(id)
  }

  /** Why a claim cannot be granted: how the claim differs from a present holder, so that the two cannot share the place. */
  difference(reservation: Wanted): PoolDifference | undefined {
    for (const held of this.at(reservation.place)) {
      if (isSuccessor(reservation, held)) continue
      const difference = poolDifference(reservation, held)
      if (difference !== undefined) return difference
    }
    return undefined
  }

  /** The holders that end when a claim is granted: those of the same agent. */
  replaced(reservation: Wanted): readonly HeldAddress[] {
    return this.at(reservation.place).filter((held) => isSuccessor(reservation, held))
  }

  add(held: HeldAddress): void {
    const before = this.get(held)
    if (before) this.delete(before)
    this.#bySlot.set(slotOf(held), held)
    this.#byAddress.add(held.place, held)
    this.#byEndpoint.set(endpointIdOf(held), held)
  }

  delete(held: HeldAddress): void {
    if (this.has(held)) this.#bySlot.delete(slotOf(held))
    this.#byAddress.delete(held.place, held)
    const id = endpointIdOf(held)
    if (this.#byEndpoint.get(id) === held) this.#byEndpoint.delete(id)
  }
}

/** The id of a tunnel's own endpoint; in a pool it differs from the id of the shared configuration. */
export function endpointIdOf({ config, tunnelId, pool }: Pick<Reservation, 'config' | 'tunnelId' | 'pool'>): string {
  return pool ? `ep_${tunnelId.slice('tn_'.length)}` : config.id
}

/**
 * Whether the claim replaces a holder: the same tunnel, or another of its session that was left behind at another plane,
 * unless both are members of a pool. Two tunnels of a session at one plane are two holders: the first has the address until
 * it gives it up.
 */
function isSuccessor(reservation: Wanted, held: HeldAddress): boolean {
  if (held.tunnelId === reservation.tunnelId) return true
  return (
    held.sessionId === reservation.sessionId && held.planeId !== reservation.planeId && !(held.pool && reservation.pool)
  )
}
