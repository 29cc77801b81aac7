/**
 * What a door has to tell the same door at other data planes, so that caps hold for all of them together: how many
 * connections are open, and how much was taken of each rate since it last told.
 */
import { BURST_SECONDS } from '../limits/token-bucket.ts'
import type { CapLimits } from './connection-caps.ts'

export interface CapNews {
  /** Open connections at this plane; absent when that has not changed. */
  readonly open?: number
  /** Handshakes since the last news. */
  readonly handshakes: number
  readonly sources: readonly SourceNews[]
}

/** The open connections of a source at this plane, and its requests and handshakes since the last news. */
export type SourceNews = readonly [name: string, open: number, requests: number, handshakes: number]

/**
 * The part of a limit that all planes together may use before they tell each other; what is more is told at the end of
 * the turn. So a limit is exceeded by that part, and by what is taken while a message is under way.
 */
const UNTOLD_PART = 0.05

interface Untold {
  opened: number
  requests: number
  handshakes: number
}

export interface UntoldNewsOptions {
  readonly limits: CapLimits
  /** Planes that share the limits, this one included. */
  readonly planes: number
  /** There is something to tell: within the usual time, or at the end of this turn. */
  readonly onNews: (isUrgent: boolean) => void
}

export class UntoldNews {
  readonly #options: UntoldNewsOptions
  readonly #sources = new Map<string, Untold>()
  #opened = 0
  #hasOpen = false
  #handshakes = 0

  constructor(options: UntoldNewsOptions) {
    this.#options = options
  }

  /** Connections were opened, or closed when `change` is negative. */
  open(change: number): void {
    const { maxConnections } = this.#options.limits
    if (maxConnections === 0) return
    this.#hasOpen = true
    this.#opened += change
    this.#note(this.#opened, maxConnections)
  }

  openFrom(name: string, change: number): void {
    const source = this.#source(name)
    source.opened += change
    this.#note(source.opened, this.#options.limits.maxConnectionsPerSource)
  }

  /** `name` is absent for a source without limits; `isAllowed` false when the limit for all refused it. */
  handshake(name: string | undefined, { isAllowed }: { readonly isAllowed: boolean }): void {
    const { maxHandshakes, maxHandshakesPerSource } = this.#options.limits
    if (maxHandshakes > 0 && isAllowed) this.#note(++this.#handshakes, maxHandshakes * BURST_SECONDS)
    if (name === undefined || maxHandshakesPerSource === 0) return
    this.#note(++this.#source(name).handshakes, maxHandshakesPerSource * BURST_SECONDS)
  }

  request(name: string): void {
    this.#note(++this.#source(name).requests, this.#options.limits.maxRequestsPerSource * BURST_SECONDS)
  }

  /** All that is untold, which counts as told from now on; undefined when there is nothing. */
  take(open: number, openOf: (name: string) => number): CapNews | undefined {
    if (!this.#hasOpen && this.#handshakes === 0 && this.#sources.size === 0) return undefined
    const sources: SourceNews[] = []
    for (const [name, { requests, handshakes }] of this.#sources) {
      sources.push([name, openOf(name), requests, handshakes])
    }
    const news = { handshakes: this.#handshakes, sources, ...(this.#hasOpen && { open }) }
    this.#sources.clear()
    this.#opened = 0
    this.#hasOpen = false
    this.#handshakes = 0
    return news
  }

  #source(name: string): Untold {
    let source = this.#sources.get(name)
    if (!source) {
      source = { opened: 0, requests: 0, handshakes: 0 }
      this.#sources.set(name, source)
    }
    return source
  }

  #note(untold: number, limit: number): void {
    const { planes, onNews } = this.#options
    onNews(untold >= Math.max(1, (limit * UNTOLD_PART) / planes))
  }
}
