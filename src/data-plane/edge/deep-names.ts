/** Decides which names deep below a wildcard get a certificate of their own. */
import type { Clock } from '../../lib/clock.ts'

/**
 * How many parents below one wildcard may have certificates of their own. The wildcard of an edge covers any number of labels,
 * that of a certificate only one: `a.b.example.com` needs a certificate for `*.b.example.com`. Visitors can make up any number of
 * such names, and each certificate costs time and cache space.
 */
const MAX_PARENTS = 32

/** How long a parent must be unused before another may take its place, in milliseconds. */
const UNUSED_MS = 3_600_000

/** How many wildcards are remembered; the least recently used goes first. */
const MAX_WILDCARDS = 4096

export class DeepNames {
  readonly #now: Clock
  /** When each parent was last used, least recently used first; by wildcard, in the same order. */
  readonly #wildcards = new Map<string, Map<string, number>>()

  constructor(now: Clock) {
    this.#now = now
  }

  /** Whether `parent`, a wildcard deep below `wildcard`, gets a certificate of its own. */
  admits(wildcard: string, parent: string): boolean {
    const now = this.#now()
    const parents = this.#parentsOf(wildcard)
    if (!parents.delete(parent) && parents.size >= MAX_PARENTS) {
      const [oldest = ['', now] as const] = parents
      if (oldest[1] > now - UNUSED_MS) return false
      parents.delete(oldest[0])
    }
    parents.set(parent, now)
    return true
  }

  #parentsOf(wildcard: string): Map<string, number> {
    const parents = this.#wildcards.get(wildcard) ?? new Map<string, number>()
    this.#wildcards.delete(wildcard)
    this.#wildcards.set(wildcard, parents)
    const [oldest = wildcard] = this.#wildcards.keys()
    if (this.#wildcards.size > MAX_WILDCARDS) this.#wildcards.delete(oldest)
    return parents
  }
}
