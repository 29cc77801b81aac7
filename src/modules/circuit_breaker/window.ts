/** Counts requests and failures over a rolling window, which is divided into buckets that expire one by one. */

export class RollingWindow {
  readonly #bucketMs: number
  readonly #totals: Float64Array
  readonly #failures: Float64Array
  /** The current bucket, counted from 1970. */
  #current = 0
  #total = 0
  #failed = 0

  constructor({ millis, buckets }: { millis: number; buckets: number }) {
    this.#bucketMs = millis / buckets
    this.#totals = new Float64Array(buckets)
    this.#failures = new Float64Array(buckets)
  }

  /** Counts requests, and returns the totals of the window. */
  add(now: number, total: number, failed: number): { total: number; failed: number } {
    this.#moveTo(Math.floor(now / this.#bucketMs))
    const at = this.#current % this.#totals.length
    this.#totals[at] = (this.#totals[at] ?? 0) + total
    this.#total += total
    this.#failures[at] = (this.#failures[at] ?? 0) + failed
    this.#failed += failed
    return { total: this.#total, failed: this.#failed }
  }

  clear(): void {
    this.#totals.fill(0)
    this.#failures.fill(0)
    this.#total = 0
    this.#failed = 0
  }

  /** Clears the buckets that have expired; all of them when the clock moved by more than the window, either way. */
  #moveTo(bucket: number): void {
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
