/** The latest exchanges of an agent, of bounded number and size; they are only in memory. */
import type { PassingRequest } from './connection-watch.ts'
import { type ExchangeOrigin, InspectedExchange } from './inspected-exchange.ts'

/** How many exchanges are kept, and how many bytes of them in all. */
const MAX_EXCHANGES = 500
const MAX_BYTES = 32 * 1024 * 1024

export interface InspectedExchangesOptions {
  readonly now: () => number
  readonly clock: () => number
  readonly maxExchanges?: number
  readonly maxBytes?: number
}

/** Hears of changes; `removed` tells that it is not kept any more. */
export type ExchangeListener = (exchange: InspectedExchange, change: 'changed' | 'removed') => void

export class InspectedExchanges {
  readonly #options: InspectedExchangesOptions
  readonly #all = new Map<number, InspectedExchange>()
  readonly #listeners = new Set<ExchangeListener>()
  /** Tells ids of this process from those of another. */
  readonly #since: number
  #count = 0
  #bytes = 0

  constructor(options: InspectedExchangesOptions) {
    this.#options = options
    this.#since = Math.floor(options.clock() / 1000)
  }

  /** What they take, about, in bytes. */
  get bytes(): number {
    return this.#bytes
  }

  /** The newest first. */
  latest(): InspectedExchange[] {
    return [...this.#all.values()].reverse()
  }

  find(id: string): InspectedExchange | undefined {
    if (!/^[0-9a-f]{16}$/.test(id)) return undefined
    const number = Number.parseInt(id.slice(8), 16)
    return id === this.#idOf(number) ? this.#all.get(number) : undefined
  }

  idOf({ number }: InspectedExchange): string {
    return this.#idOf(number)
  }

  begin(request: PassingRequest, origin: ExchangeOrigin): InspectedExchange {
    const { now, clock, maxExchanges = MAX_EXCHANGES } = this.#options
    const number = ++this.#count
    let isAdded = false
    const exchange = new InspectedExchange(number, request, origin, {
      ...{ now, clock },
      onGrew: (bytes) => {
        this.#bytes += bytes
        if (isAdded && bytes > 0) this.#makeRoom()
      },
      onChange: () => this.#tell(exchange, 'changed'),
    })
    this.#all.set(number, exchange)
    isAdded = true
    if (this.#all.size > maxExchanges) this.#dropOldest()
    this.#makeRoom()
    this.#tell(exchange, 'changed')
    return exchange
  }

  /** Forgets all of them. */
  clear(): void {
    while (this.#all.size > 0) this.#dropOldest()
  }

  /** Returns a function that stops listening. */
  listen(listener: ExchangeListener): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  #idOf(number: number): string {
    return (this.#since >>> 0).toString(16).padStart(8, '0') + (number >>> 0).toString(16).padStart(8, '0')
  }

  /** The one that grows stays, if it is the only one: it has bounds of its own. */
  #makeRoom(): void {
    const { maxBytes = MAX_BYTES } = this.#options
    while (this.#bytes > maxBytes && this.#all.size > 1) this.#dropOldest()
  }

  #dropOldest(): void {
    const [oldest] = this.#all.values()
    if (!oldest) return
    this.#all.delete(oldest.number)
    oldest.drop()
    this.#tell(oldest, 'removed')
  }

  #tell(exchange: InspectedExchange, change: 'changed' | 'removed'): void {
    for (const listener of this.#listeners) listener(exchange, change)
  }
}
