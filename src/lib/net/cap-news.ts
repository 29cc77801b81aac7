/** What a listener reports to the same listener at other data planes, so that caps apply to all of them together. */
import { BURST_SECONDS } from '../limits/token-bucket.ts'
import type { CapLimits } from './connection-caps.ts'

/** How many connections are open, and how much of each rate was used since the last report. */
export interface CapNews {
  /** Open connections at this plane; absent when that has not changed. */
  readonly open?: number
  /** Handshakes since the last news. */
  readonly handshakes: number
  readonly sources: readonly SourceNews[]
}

/** The open connections of a source at this plane, and its requests and handshakes since the last news. */
type SourceNews = readonly [name: string, open: number, requests: number, handshakes: number]

/**
 * The part of a limit that all planes together may use before they tell each other; more than that is reported at the
 * end of the turn. So a limit may be exceeded by that part, and by what is used while a message is under way.
 */
const UNREPORTED_PART = 0.05

interface Unreported {
  opened: number
  requests: number
  handshakes: number
}

interface CapNewsOptions {
  readonly limits: CapLimits
  /** How many planes share the limits, including this one. */
  readonly planes: number
  /** Called when there is something to report: within the usual time, or, if urgent, at the end of this turn. */
  readonly onNews: (isUrgent: boolean) => void
}

export class RefusalNews {
  readonly #options: CapNewsOptions
  readonly #sources = new Map<string, Unreported>()
  #opened = 0
  #hasOpen = false
  #handshakes = 0

  constructor(options: CapNewsOptions) {
    this.#options = options
  }

  /** Notes that connections were opened, or closed when `change` is negative. */
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

  /** `name` is undefined for a source without limits; `isAllowed` is false if the total limit refused the handshake. */
  handshake(name: string | undefined, { isAllowed }: { readonly isAllowed: boolean }): void {
    const { maxHandshakes, maxHandshakesPerSource } = this.#options.limits
    if (maxHandshakes > 0 && isAllowed) this.#note(++this.#handshakes, maxHandshakes * BURST_SECONDS)
    if (name === undefined || maxHandshakesPerSource === 0) return
    this.#note(++this.#source(name).handshakes, maxHandshakesPerSource * BURST_SECONDS)
  }

  request(name: string): void {
    this.#note(++this.#source(name).requests, this.#options.limits.maxRequestsPerSource * BURST_SECONDS)
  }

  /** All that is unreported, which counts as reported from now on; undefined when there is nothing. */
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

  #source(name: string): Unreported {
    let source = this.#sources.get(name)
    if (!source) {
      source = { opened: 0, requests: 0, handshakes: 0 }
      this.#sources.set(name, source)
    }
    return source
  }

  #note(unreported: number, limit: number): void {
    const { planes, onNews } = this.#options
    onNews(unreported >= Math.max(1, (limit * UNREPORTED_PART) / planes))
  }
}
