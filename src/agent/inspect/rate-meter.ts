/** Measures the traffic of a tunnel for the local API: counts, rates and durations. */
import { DurationHistogram } from '../duration-histogram.ts'

/** How often averages are updated, in milliseconds, and over how many minutes each looks back. */
const TICK_MS = 5000
const AVERAGES = [1, 5, 15] as const

export class RateMeter {
  readonly #now: () => number
  readonly #durations = new DurationHistogram()
  /** Events a second. */
  readonly #rates = AVERAGES.map(() => 0)
  #count = 0
  #open = 0
  #sinceTick = 0
  #tickedAt: number
  #isBegun = false

  constructor(now: () => number) {
    this.#now = now
    this.#tickedAt = now()
  }

  /** Counts an event that began at `now`. */
  began(now = this.#now()): void {
    if (now - this.#tickedAt >= TICK_MS) this.#tick()
    this.#count++
    this.#sinceTick++
    this.#open++
  }

  /** Counts an event that was not examined, so that its duration is unknown. `now` may be a moment ago. */
  passed(now: number): void {
    this.began(now)
    this.#open--
  }

  ended(durationMs: number): void {
    this.#open--
    this.#durations.took(durationMs)
  }

  /** Rates are per second, percentiles in nanoseconds. */
  get figures() {
    this.#tick()
    const [rate1 = 0, rate5 = 0, rate15 = 0] = this.#rates
    const [p50 = 0, p90 = 0, p95 = 0, p99 = 0] = this.#durations.percentiles([0.5, 0.9, 0.95, 0.99]) ?? []
    const ns = (ms: number): number => Math.round(ms * 1e6)
    const percentiles = { p50: ns(p50), p90: ns(p90), p95: ns(p95), p99: ns(p99) }
    return { count: this.#count, gauge: this.#open, rate1, rate5, rate15, ...percentiles }
  }

  /** Updates exponentially weighted averages; intervals that have passed are made up for on the next call. */
  #tick(): void {
    const ticks = Math.floor((this.#now() - this.#tickedAt) / TICK_MS)
    if (ticks <= 0) return
    this.#tickedAt += ticks * TICK_MS
    const rate = this.#sinceTick / (TICK_MS / 1000)
    for (const [i, minutes] of AVERAGES.entries()) {
      const keep = Math.exp(-TICK_MS / 60_000 / minutes)
      const before = this.#rates[i] ?? 0
      const first = this.#isBegun ? before + (1 - keep) * (rate - before) : rate
      this.#rates[i] = first * keep ** (ticks - 1)
    }
    this.#isBegun = true
    this.#sinceTick = 0
  }
}
