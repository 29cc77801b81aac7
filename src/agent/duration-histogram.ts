/** The latest durations, and their percentiles. */

/** How many durations are kept. */
const SAMPLES = 500

export class DurationHistogram {
  readonly #latest = new Float64Array(SAMPLES)
  #sampled = 0

  took(ms: number): void {
    this.#latest[this.#sampled % SAMPLES] = ms
    this.#sampled++
  }

  /** The durations that these shares did not exceed, in milliseconds; undefined when there are none. */
  percentiles(shares: readonly number[]): readonly number[] | undefined {
    const known = Math.min(this.#sampled, SAMPLES)
    if (known === 0) return undefined
    const sorted = this.#latest.slice(0, known).toSorted()
    return shares.map((share) => sorted[Math.min(known - 1, Math.floor(share * known))] ?? 0)
  }
}
