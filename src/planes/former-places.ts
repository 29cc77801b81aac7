/**
 * Addresses that other nodes had until a look-up found nobody. While nothing can be looked up they are served as they were: a node
 * whose lease had expired may have them again, and it says so when it is dialled.
 */
import { keepLast } from './known-places.ts'
import type { DistantPlace } from './port.ts'

interface FormerPlace {
  readonly at: number
  readonly place: DistantPlace
}

export class FormerPlaces {
  readonly #now: () => number
  readonly #forgetMs: number
  /** The latest last. */
  readonly #places = new Map<string, FormerPlace>()

  /** `now` is a clock that never jumps; a place is forgotten after `forgetMs`. Both are in milliseconds. */
  constructor({ now, forgetMs }: { readonly now: () => number; readonly forgetMs: number }) {
    this.#now = now
    this.#forgetMs = forgetMs
  }

  /** Nobody has this place any more. */
  add(place: DistantPlace): void {
    keepLast(this.#places, place.place, { at: this.#now(), place })
  }

  /** What was served at a place. */
  get(place: string): DistantPlace | undefined {
    return this.#places.get(place)?.place
  }

  /** Somebody has it again. */
  delete(place: string): void {
    this.#places.delete(place)
  }

  /** Forgets the oldest. */
  tidy(): void {
    const before = this.#now() - this.#forgetMs
    for (const [place, { at }] of this.#places) {
      if (at > before) return
      this.#places.delete(place)
    }
  }
}
