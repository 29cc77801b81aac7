/** Allows a steady rate per second, and twice as many at once: page loads and reconnecting agents come in bursts. */

export const BURST_SECONDS = 2

export class TokenBucket {
  readonly #perSecond: number
  readonly #depth: number
  #tokens: number
  #at: number

  /** `now` is in milliseconds, of a clock that never goes back. */
  constructor(perSecond: number, now: number) {
    this.#perSecond = perSecond
    this.#depth = perSecond * BURST_SECONDS
    this.#tokens = this.#depth
    this.#at = now
  }

  /** Takes one; false when there is none. */
  take(now: number): boolean {
    if (this.isEmpty(now)) return false
    this.#tokens--
    return true
  }

  isEmpty(now: number): boolean {
    this.#fill(now)
    return this.#tokens < 1
  }

  /** Takes what was used elsewhere of the same rate; when that is more than is left, nothing is left for a while. */
  charge(now: number, used: number): void {
    this.#fill(now)
    this.#tokens = Math.max(-this.#depth, this.#tokens - used)
  }

  #fill(now: number): void {
    this.#tokens = Math.min(this.#depth, this.#tokens + ((now - this.#at) / 1000) * this.#perSecond)
    this.#at = now
  }
}
