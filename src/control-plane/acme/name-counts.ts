/** How many names there are, for the metrics. */
import type { NameCounts } from '../store/certificate-reader.ts'

interface CountedNamesOptions {
  readonly count: () => Promise<NameCounts>
  /** A monotonic clock, in milliseconds. */
  readonly steady: () => number
}

/** How long a count is kept at least, in milliseconds. */
const LEAST_MS = 5000

/** How many times longer a count is kept than it took: counting takes longer the more names there are. */
const TIMES_AS_LONG = 100

export class CertificateNameCounts {
  readonly #options: CountedNamesOptions
  #counting: Promise<NameCounts> | undefined
  #counted: { readonly counts: NameCounts; readonly until: number } | undefined

  constructor(options: CountedNamesOptions) {
    this.#options = options
  }

  /** Concurrent callers share a count. */
  async get(): Promise<NameCounts> {
    if (this.#counted && this.#options.steady() < this.#counted.until) return this.#counted.counts
    this.#counting ??= this.#count().finally(() => {
      this.#counting = undefined
    })
    return this.#counting
  }

  async #count(): Promise<NameCounts> {
    const { count, steady } = this.#options
    const begun = steady()
    const counts = await count()
    const ended = steady()
    this.#counted = { counts, until: ended + Math.max(LEAST_MS, (ended - begun) * TIMES_AS_LONG) }
    return counts
  }
}
