/** Measures how long each turn of this thread's event loop takes. */
import { PerformanceObserver } from 'node:perf_hooks'

export interface Turn {
  /** CPU time of this thread in one turn, in milliseconds. */
  readonly cpuMs: number
  /** The same by the clock, which is longer when the machine is busy. */
  readonly wallMs: number
  /** The part of it that garbage collection took, which may fall into any turn. */
  readonly collectorMs: number
}

/** The interval of ticks, in milliseconds. Several turns that are shorter than this together count as one. */
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
    // Includes records that the observer has not delivered yet.
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
    // The CPU clock may be coarse, so its value is limited to the wall-clock time of the turn.
    const wallMs = now - this.#at
    const cpuMs = Math.min((user + system) / 1000, wallMs)
    this.#at = now
    if (cpuMs > this.#longest.cpuMs) this.#longest = { cpuMs, wallMs, endedAt: now }
  }
}

const none = { cpuMs: 0, wallMs: 0, endedAt: 0 }
