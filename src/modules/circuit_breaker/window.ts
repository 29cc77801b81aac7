/** Requests and failures of the last while, counted in parts of it that are forgotten one by one. */

export class RollingWindow {
  readonly #bucketMs: number
  readonly #totals: Float64Array
  readonly #failures: Float64Array
  /** The number, since 1970, of the part that counts now. */
  #current = 0
  #total = 0
  #failed = 0

  constructor({ millis, buckets }: { millis: number; buckets: number }) {
    this.#bucketMs = millis / buckets
    this.#totals = new Float64Array(buckets)
    this.#failures = new Float64Array(buckets)
  }

  /** Counts one, and gives what the window holds with it. */
  add(now: number, hasFailed: boolean): { total: number; failed: number } {
    this.#turnTo(Math.floor(now / this.#bucketMs))
    const at = this.#current % this.#totals.length
    this.#totals[at] = (this.#totals[at] ?? 0) + 1
    this.#total++
    if (hasFailed) {
      this.#failures[at] = (this.#failures[at] ?? 0) + 1
      this.#failed++
    }
    return { total: this.#total, failed: this.#failed }
  }

  clear(): void {
    this.#totals.fill(0)
    this.#failures.fill(0)
    this.#total = 0
    this.#failed = 0
  }

  /** Forgets the parts that are over; all, when the clock was set forward or back by more than the window. */
  #turnTo(bucket: number): void {
    const size = this.#totals.length
    if (Math.abs(bucket - this.#current) >= size) {
      this.clear()
      this.#current = bucket
    }
    while (this.#current < bucket) this.#forget(++this.#current % size)
  }

  #forget(at: number): void {
    this.#total -= this.#totals[at] ?? 0
    this.#failed -= this.#failures[at] ?? 0
    this.#totals[at] = 0
    this.#failures[at] = 0
  }
}
