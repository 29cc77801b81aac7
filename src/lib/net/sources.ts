/**
 * What each source has open and how fast it comes. A source is kept while it has a connection open, so there are no more of
 * those than connections; of the others the last ones to leave are remembered, so that closing a connection after each
 * request is no way around a rate.
 */

import { TokenBucket } from '../limits/token-bucket.ts'
import { sourceOf } from './source.ts'

/** Sources without a connection that are remembered; whoever left first is forgotten first. */
const MAX_ABSENT = 16_384

export interface SourceRates {
  /** A second; 0 for no limit. */
  readonly requests: number
  readonly handshakes: number
}

export class Source {
  /** Connections that are open. */
  open = 0
  readonly rates: SourceRates
  readonly requests: TokenBucket | undefined
  readonly handshakes: TokenBucket | undefined

  constructor(rates: SourceRates, now: number) {
    const { requests, handshakes } = rates
    this.rates = rates
    this.requests = requests > 0 ? new TokenBucket(requests, now) : undefined
    this.handshakes = handshakes > 0 ? new TokenBucket(handshakes, now) : undefined
  }
}

export class Sources {
  #rates: SourceRates
  readonly #now: () => number
  readonly #maxAbsent: number
  readonly #present = new Map<string, Source>()
  /** The first to leave first. */
  readonly #absent = new Map<string, Source>()

  constructor(rates: SourceRates, { now, maxAbsent = MAX_ABSENT }: { now: () => number; maxAbsent?: number }) {
    this.#rates = rates
    this.#now = now
    this.#maxAbsent = maxAbsent
  }

  /** How many are kept. */
  get size(): number {
    return this.#present.size + this.#absent.size
  }

  /** Goes over to other rates, each source when it next comes. */
  use(rates: SourceRates): void {
    this.#rates = rates
  }

  of(ip: string): Source {
    const name = sourceOf(ip)
    const known = this.#present.get(name) ?? this.#absent.get(name)
    if (known?.rates === this.#rates) return known
    const source = new Source(this.#rates, this.#now())
    if (known) source.open = known.open
    if (this.#present.has(name)) this.#present.set(name, source)
    else this.#remember(name, source)
    return source
  }

  /** One more connection; it must `leave` when it closes. */
  enter(ip: string): void {
    const source = this.of(ip)
    if (source.open++ > 0) return
    const name = sourceOf(ip)
    this.#absent.delete(name)
    this.#present.set(name, source)
  }

  leave(ip: string): void {
    const name = sourceOf(ip)
    const source = this.#present.get(name)
    if (!source || --source.open > 0) return
    this.#present.delete(name)
    this.#remember(name, source)
  }

  #remember(name: string, source: Source): void {
    this.#absent.set(name, source)
    const [first] = this.#absent.keys()
    if (this.#absent.size > this.#maxAbsent && first !== undefined) this.#absent.delete(first)
  }
}
