/**
 * What other nodes had until a look-up found that they no longer do. While nothing can be looked up it is served as it was: a node
 * whose lease had expired may have it again, and says so when it is dialled.
 */
import { keepLast } from './address-cache.ts'

interface LastKnownOptions {
  /** A clock that never jumps, in milliseconds. */
  readonly now: () => number
  /** After how long it is forgotten, in milliseconds. */
  readonly forgetMs: number
}

export class LastKnown<T> {
  readonly #options: LastKnownOptions
  /** By key, the latest last. */
  readonly #all = new Map<string, { readonly at: number; readonly what: T }>()

  constructor(options: LastKnownOptions) {
    this.#options = options
  }

  /** It is gone from now on. */
  add(key: string, what: T): void {
    keepLast(this.#all, key, { at: this.#options.now(), what })
  }

  get(key: string): T | undefined {
    return this.#all.get(key)?.what
  }

  /** It is there again. */
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
