/** Limits the API requests of a user or bot per minute, whatever number of keys it has (D14). */
import type { Clock } from '../../lib/clock.ts'

const WINDOW_MS = 60_000
/** Most owners that are tracked; the oldest windows are forgotten first. */
const MAX_OWNERS = 10_000

export class RateLimit {
  #perMinute: number
  readonly #now: Clock
  readonly #windows = new Map<string, { startedAt: number; used: number }>()

  /** With `perMinute` 0 there is no limit. */
  constructor({ perMinute, now }: { perMinute: number; now: Clock }) {
    this.#perMinute = perMinute
    this.#now = now
  }

  /** Applies another limit; requests of the current minute still count. */
  use(perMinute: number): void {
    this.#perMinute = perMinute
  }

  /** Counts one request of `ownerId`; returns the seconds to wait when it is over the limit, else 0. */
  take(ownerId: string): number {
    if (this.#perMinute === 0) return 0
    const now = this.#now()
    const window = this.#windows.get(ownerId)
    // If the clock was set back, a window that begins in the future counts as over, so that nobody is locked out.
    if (!window || now - window.startedAt >= WINDOW_MS || now < window.startedAt) {
      this.#windows.delete(ownerId)
      this.#windows.set(ownerId, { startedAt: now, used: 1 })
      this.#forget()
      return 0
    }
    if (window.used < this.#perMinute) {
      window.used++
      return 0
    }
    return Math.max(1, Math.ceil((window.startedAt + WINDOW_MS - now) / 1000))
  }

  #forget(): void {
    if (this.#windows.size <= MAX_OWNERS) return
    const oldest = this.#windows.keys().next().value
    if (oldest !== undefined) this.#windows.delete(oldest)
  }
}
