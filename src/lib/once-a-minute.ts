/** Tells whether a line of the log is due: what visitors can bring about any number of times is told once a minute. */
import type { Clock } from './clock.ts'

/** Between two lines of one kind, in milliseconds. */
const BETWEEN_MS = 60_000

/** Kinds that are told apart; the one told longest ago is forgotten first. */
const MAX_KINDS = 1000

/** What of the name of a kind counts, in characters. */
const KIND_CHARACTERS = 256

export class OnceAMinute {
  readonly #now: Clock
  /** When each kind was last told, the longest ago first, and how often it was kept back since. */
  readonly #told = new Map<string, { readonly at: number; keptBack: number }>()

  constructor(now: Clock) {
    this.#now = now
  }

  /** How many lines of this kind were kept back since the last one; undefined when this one is to be kept back too. */
  due(kind: string): number | undefined {
    const key = kind.slice(0, KIND_CHARACTERS)
    const known = this.#told.get(key)
    const age = known ? this.#now() - known.at : BETWEEN_MS
    // A clock that was set back must not keep the log silent.
    if (known && age >= 0 && age < BETWEEN_MS) {
      known.keptBack++
      return undefined
    }
    this.#told.delete(key)
    this.#told.set(key, { at: this.#now(), keptBack: 0 })
    const [oldest = key] = this.#told.keys()
    if (this.#told.size > MAX_KINDS) this.#told.delete(oldest)
    return known?.keptBack ?? 0
  }
}
