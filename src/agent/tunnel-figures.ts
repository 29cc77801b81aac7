/** Statistics of an agent: connections, durations, and the last requests; of bounded size. */
import { DurationHistogram } from './duration-histogram.ts'

/** How many of the last requests are kept. */
const RECENT = 50

export interface SeenRequest {
  /** The name of the tunnel that it came through. */
  readonly tunnel: string
  /** When it came, in milliseconds since 1970. */
  readonly time: number
  readonly method: string
  readonly path: string
  /** Undefined until the response, and for good if there is none. */
  status: number | undefined
  durationMs: number | undefined
}

export class TunnelFigures {
  #total = 0
  #open = 0
  readonly #durations = new DurationHistogram()
  readonly #recent: SeenRequest[] = []

  /** Connections since the start. */
  get total(): number {
    return this.#total
  }

  get open(): number {
    return this.#open
  }

  /** The last requests, newest first. */
  get recent(): readonly SeenRequest[] {
    return this.#recent
  }

  opened(): void {
    this.#total++
    this.#open++
  }

  closed(): void {
    this.#open--
  }

  /** Records a duration: of a request where requests are seen, else of a connection. */
  took(ms: number): void {
    this.#durations.took(ms)
  }

  saw(request: SeenRequest): void {
    this.#recent.unshift(request)
    if (this.#recent.length > RECENT) this.#recent.pop()
  }

  /** The duration that this share of the recent ones did not exceed, in milliseconds; undefined when there are none. */
  percentile(share: number): number | undefined {
    return this.#durations.percentiles([share])?.[0]
  }
}
