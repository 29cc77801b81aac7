/** Keeps what look-ups no longer find at other nodes, for the time while look-ups fail. */
import { keepLast } from './address-cache.ts'

interface LastKnownOptions {
  /** A clock that never jumps, in milliseconds. */
  readonly now: () => number
  /** After how long an entry is forgotten, in milliseconds. */
  readonly forgetMs: number
}

/**
 * While look-ups fail, visitors are sent to the last known node. A node whose lease had expired may have the tunnel again, and
 * refuses the dial if it does not.
 */
export class LastKnown<T> {
  readonly #options: LastKnownOptions
  /** By key, the latest last. */
  readonly #all = new Map<string, { readonly at: number; readonly what: T }>()

  constructor(options: LastKnownOptions) {
    this.#options = options
  }

  /** Keeps what a look-up no longer found. */
  add(key: string, what: T): void {
    keepLast(this.#all, key, { at: this.#options.now(), what })
  }

  get(key: string): T | undefined {
    return this.#all.get(key)?.what
  }

  /** Forgets what is there again. */
  delete(key: string): void {
    this.#all.delete(key)
  }

  /** Forgets what has been gone for long. */
  tidy(): void {
    const { now, forgetMs } = this.#options
    const before = now() - forgetMs
    for (const [key, { at }] of this.#all) {
      if (at > before) return
      this.#all.delete(key)
    }
  }
}
