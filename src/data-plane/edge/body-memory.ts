/** The memory of this node for request bodies that modules read: one budget, shared by edges and by sources. */
import { shareOf } from '../../lib/limits/share-of.ts'
import { clientKeyOf } from '../../lib/net/client-key.ts'

/** Whose body it is. */
export interface BodyHolder {
  readonly edgeId: string
  /** The visitor's address. All streams of an HTTP/2 connection have the same. */
  readonly ip: string
}

/** The share of the budget that one body holds. */
export interface BodyLease {
  /** Takes this many more bytes; false, with nothing taken, when they are not available. */
  take(bytes: number): boolean
  /** Gives this many bytes back. */
  give(bytes: number): void
  /** Gives everything back. Later calls do nothing. */
  release(): void
}

/**
 * An edge may hold half of what other edges leave free, and a source a quarter of what other sources leave free.
 *
 * Of 64 MiB, the first edge gets up to 32 MiB, and a second edge up to 16 MiB while the first holds all of its share. So the last
 * edge to come still gets some, and an edge that is alone is not held to a small fixed share. The budget is never used up, since
 * each share is less than what is free. A source gets less than an edge, so that one visitor cannot take all that its edge has.
 * Announcing a length reserves nothing: bytes are taken as they arrive, so a visitor must send as much as it takes.
 */
const EDGE_SHARE = 1 / 2
const SOURCE_SHARE = 1 / 4

/**
 * Each data plane has at least this much, in bytes, or all of a smaller budget. With less, one source would never have room for
 * the largest body that a module reads: 10 MiB and what its pieces add.
 */
const PLANE_BYTES = 48 * 1024 * 1024

/** The share of the node's budget that each of several data planes gets. */
export function bodyMemoryOf(bytes: number, planes: number): number {
  return shareOf(bytes, planes, PLANE_BYTES)
}

/** Overhead of holding one piece, in bytes: a thousand pieces of one byte must not be free. */
export const PIECE_BYTES = 256

export class BodyMemory {
  /** Bytes that bodies hold now. */
  used = 0
  /** How often a body did not get what it needed. */
  refusals = 0
  #bytes: number
  readonly #byEdge = new Map<string, number>()
  readonly #bySource = new Map<string, number>()

  constructor({ bytes }: { bytes: number }) {
    this.#bytes = bytes
  }

  /** Switches to another budget; bodies keep what they hold. */
  use(bytes: number): void {
    this.#bytes = bytes
  }

  lease({ edgeId, ip }: BodyHolder): BodyLease {
    const source = clientKeyOf(ip)
    let held = 0
    let isOver = false
    const give = (bytes: number): void => {
      const given = Math.min(bytes, held)
      held -= given
      this.#add(edgeId, source, -given)
    }
    return {
      take: (bytes) => {
        if (isOver || !this.#fits(edgeId, source, bytes)) {
          if (!isOver) this.refusals++
          return false
        }
        held += bytes
        this.#add(edgeId, source, bytes)
        return true
      },
      give,
      release: () => {
        isOver = true
        give(held)
      },
    }
  }

  #fits(edgeId: string, source: string, bytes: number): boolean {
    const ofEdge = this.#byEdge.get(edgeId) ?? 0
    const ofSource = this.#bySource.get(source) ?? 0
    const leftByOthers = (own: number): number => this.#bytes - (this.used - own)
    return (
      ofEdge + bytes <= leftByOthers(ofEdge) * EDGE_SHARE && ofSource + bytes <= leftByOthers(ofSource) * SOURCE_SHARE
    )
  }

  #add(edgeId: string, source: string, bytes: number): void {
    if (bytes === 0) return
    this.used += bytes
    addTo(this.#byEdge, edgeId, bytes)
    addTo(this.#bySource, source, bytes)
  }
}

/** An owner that holds nothing is removed from the map. */
function addTo(holders: Map<string, number>, key: string, bytes: number): void {
  const held = (holders.get(key) ?? 0) + bytes
  if (held === 0) holders.delete(key)
  else holders.set(key, held)
}
