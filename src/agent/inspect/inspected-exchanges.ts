/** The latest exchanges of an agent, bounded in number and size, in memory only. */
import type { PassingRequest } from './connection-watch.ts'
import { type ExchangeOrigin, InspectedExchange } from './inspected-exchange.ts'

/** How many exchanges are kept, and how many bytes of them in all. */
const MAX_EXCHANGES = 500
const MAX_BYTES = 32 * 1024 * 1024

interface InspectedExchangesOptions {
  readonly now: () => number
  readonly clock: () => number
  readonly maxExchanges?: number
  readonly maxBytes?: number
}

/** Called for changes; `removed` means that the exchange is no longer kept. */
type ExchangeListener = (exchange: InspectedExchange, change: 'changed' | 'removed') => void

export class InspectedExchanges {
  /** Milliseconds, for durations. */
  readonly now: () => number
  /** Milliseconds since 1970. */
  readonly clock: () => number
  readonly #maxBytes: number
  /** A ring buffer by number, from the oldest to the newest. */
  readonly #ring: (InspectedExchange | undefined)[]
  #oldest = 1
  #newest = 0
  readonly #listeners = new Set<ExchangeListener>()
  /** Distinguishes ids of this process from those of another. */
  readonly #since: number
  #bytes = 0

  constructor({ now, clock, maxExchanges = MAX_EXCHANGES, maxBytes = MAX_BYTES }: InspectedExchangesOptions) {
    this.now = now
    this.clock = clock
    this.#maxBytes = maxBytes
    this.#ring = Array.from({ length: maxExchanges }, () => undefined)
    this.#since = Math.floor(clock() / 1000)
  }

  /** The approximate memory that they take, in bytes. */
  get bytes(): number {
    return this.#bytes
  }

  /** All exchanges, newest first. */
  latest(): InspectedExchange[] {
    const all: InspectedExchange[] = []
    for (let number = this.#newest; number >= this.#oldest; number--) {
      const exchange = this.#at(number)
      if (exchange) all.push(exchange)
    }
    return all
  }

  find(id: string): InspectedExchange | undefined {
    if (!/^[0-9a-f]{16}$/.test(id)) return undefined
    const number = Number.parseInt(id.slice(8), 16)
    return id === this.#idOf(number) ? this.#at(number) : undefined
  }

  idOf({ number }: InspectedExchange): string {
    return this.#idOf(number)
  }

  begin(request: PassingRequest, origin: ExchangeOrigin): InspectedExchange {
    if (this.#newest - this.#oldest + 1 === this.#ring.length) this.#dropOldest()
    const number = this.#newest + 1
    const exchange = new InspectedExchange(number, request, origin, this)
    this.#ring[number % this.#ring.length] = exchange
    this.#newest = number
    this.#makeRoom()
    this.onChange(exchange)
    return exchange
  }

  /** Drops all exchanges. */
  clear(): void {
    while (this.#oldest <= this.#newest) this.#dropOldest()
  }

  /** Returns a function that stops listening. */
  listen(listener: ExchangeListener): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** The memory of an exchange has changed by so many bytes. */
  onGrew(bytes: number): void {
    this.#bytes += bytes
    if (bytes > 0) this.#makeRoom()
  }

  onChange(exchange: InspectedExchange): void {
    for (const listener of this.#listeners) listener(exchange, 'changed')
  }

  #idOf(number: number): string {
    return (this.#since >>> 0).toString(16).padStart(8, '0') + (number >>> 0).toString(16).padStart(8, '0')
  }

  #at(number: number): InspectedExchange | undefined {
    const exchange = this.#ring[number % this.#ring.length]
    return exchange?.number === number ? exchange : undefined
  }

  /** The newest stays, even if it is large: it has bounds of its own. */
  #makeRoom(): void {
    while (this.#bytes > this.#maxBytes && this.#oldest < this.#newest) this.#dropOldest()
  }

  #dropOldest(): void {
    const oldest = this.#at(this.#oldest)
    this.#ring[this.#oldest % this.#ring.length] = undefined
    this.#oldest++
    if (!oldest) return
    oldest.drop()
    for (const listener of this.#listeners) listener(oldest, 'removed')
  }
}
