/** Tells which plane owns a key: the one with the highest score for that key (rendezvous hashing). */
import type { WorkerPeers } from './worker-peers.ts'

interface Scored {
  readonly plane: string
  readonly seed: number
}

/** When a plane comes or goes, only the keys of that plane change owners. */
export class KeyOwners {
  readonly #self: Scored
  #others: readonly Scored[] = []
  #isWithSelf = true

  constructor({ self }: Pick<WorkerPeers, 'self'>) {
    this.#self = withSeed(self)
  }

  /** Sets the other planes; without `withSelf` this plane owns nothing, unless it is alone. */
  use(others: readonly string[], { withSelf = true } = {}): void {
    this.#others = others.map(withSeed)
    this.#isWithSelf = withSelf
  }

  /** The other plane that owns `key`; undefined when this one does. */
  ownerAmongPeers(key: string): string | undefined {
    if (this.#others.length === 0) return undefined
    const hash = hashOf(key)
    let best = this.#self
    let most = this.#isWithSelf ? mixHash(hash ^ best.seed) : -1
    for (const each of this.#others) {
      const score = mixHash(hash ^ each.seed)
      // Names break ties, so that all planes agree.
      if (score < most || (score === most && each.plane < best.plane)) continue
      best = each
      most = score
    }
    return best === this.#self ? undefined : best.plane
  }
}

function withSeed(plane: string): Scored {
  return { plane, seed: mixHash(hashOf(plane)) }
}

/** FNV-1a, which is cheap for short texts. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return hash
}

/** The last steps of MurmurHash3: every bit of the input affects every bit of the result. */
function mixHash(value: number): number {
  let hash = value
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}
