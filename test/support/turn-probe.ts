/** Measures the turns of this thread's event loop: how long each keeps all others waiting. */
import { PerformanceObserver } from 'node:perf_hooks'

export interface Turn {
  /** Processor time of this thread in one turn, in milliseconds: what the turn itself is to blame for. */
  readonly cpuMs: number
  /** The same by the clock: more, where the machine has other things to do. */
  readonly wallMs: number
  /** What of that the collector of memory took: it may fall on anybody's turn. */
  readonly collectorMs: number
}

/** Between two ticks lies one turn, or several that are shorter than this together, in milliseconds. */
const TICK_MS = 1

export class TurnProbe {
  readonly #timer: NodeJS.Timeout
  #cpu = process.threadCpuUsage()
  #at = performance.now()
  #longest = none
  /** Collections since the last call of `take`. */
  readonly #collections: { readonly startTime: number; readonly duration: number }[] = []
  readonly #collector = new PerformanceObserver((list) => this.#collections.push(...list.getEntries()))

  constructor() {
    this.#collector.observe({ entryTypes: ['gc'] })
    this.#timer = setInterval(() => this.#tick(), TICK_MS).unref()
  }

  /** The longest turn since the last call. */
  take(): Turn {
    this.#tick()
    const { cpuMs, wallMs, endedAt } = this.#longest
    // Those that were not told yet are there to be taken.
    const collections = [...this.#collections.splice(0), ...this.#collector.takeRecords()]
    const within = collections.filter(({ startTime }) => startTime >= endedAt - wallMs && startTime <= endedAt)
    this.#longest = none
    return { cpuMs, wallMs, collectorMs: within.reduce((sum, { duration }) => sum + duration, 0) }
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#collector.disconnect()
  }

  #tick(): void {
    const { user, system } = process.threadCpuUsage(this.#cpu)
    this.#cpu = process.threadCpuUsage()
    const now = performance.now()
    // The clock that counts processor time may tick coarsely; a turn never takes more of it than the wall shows.
    const wallMs = now - this.#at
    const cpuMs = Math.min((user + system) / 1000, wallMs)
    this.#at = now
    if (cpuMs > this.#longest.cpuMs) this.#longest = { cpuMs, wallMs, endedAt: now }
  }
}

const none = { cpuMs: 0, wallMs: 0, endedAt: 0 }
