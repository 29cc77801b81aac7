/** The open connections and the rates of each source. */

import { TokenBucket } from '../limits/token-bucket.ts'
import { clientKeyOf } from './client-key.ts'

/** How many sources without a connection are remembered; the first to leave is forgotten first. */
const MAX_ABSENT = 16_384

interface SourceRates {
  /** Per second; 0 for no limit. */
  readonly requests: number
  readonly handshakes: number
}

class Source {
  /** Open connections. */
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

/**
 * A source is kept while it has a connection open, so the number of sources is bounded by that of connections. The others
 * that left last are remembered too: closing the connection after each request does not evade a rate.
 */
export class ClientRates {
  #rates: SourceRates
  readonly #now: () => number
  readonly #maxAbsent: number
  readonly #present = new Map<string, Source>()
  /** In the order in which they left. */
  readonly #absent = new Map<string, Source>()

  constructor(rates: SourceRates, { now, maxAbsent = MAX_ABSENT }: { now: () => number; maxAbsent?: number }) {
    this.#rates = rates
    this.#now = now
    this.#maxAbsent = maxAbsent
  }

  /** How many sources are kept. */
  get size(): number {
    return this.#present.size + this.#absent.size
  }

  /** Changes the rates; each source gets them when it is next used. */
  use(rates: SourceRates): void {
    this.#rates = rates
  }

  of(ip: string): Source {
    return this.named(clientKeyOf(ip))
  }

  /** Open connections of a source. */
  openOf(name: string): number {
    return this.#present.get(name)?.open ?? 0
  }

  /** Sources that have a connection open. */
  get present(): IterableIterator<string> {
    return this.#present.keys()
  }

  /** The source with this name, which must come from `clientKeyOf`. */
  named(name: string): Source {
    const known = this.#present.get(name) ?? this.#absent.get(name)
    if (known?.rates === this.#rates) return known
    const source = new Source(this.#rates, this.#now())
    if (known) source.open = known.open
    if (this.#present.has(name)) this.#present.set(name, source)
    else this.#remember(name, source)
    return source
  }

  /** Counts one more connection; call `leave` when it closes. */
  enter(ip: string): void {
    const source = this.of(ip)
    if (source.open++ > 0) return
    const name = clientKeyOf(ip)
    this.#absent.delete(name)
    this.#present.set(name, source)
  }

  leave(ip: string): void {
    const name = clientKeyOf(ip)
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
