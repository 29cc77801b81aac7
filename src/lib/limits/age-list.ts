/**
 * Things from the oldest to the newest, linked through themselves. Not a Set: one that is added to and taken from for
 * every request is made anew again and again, and this makes nothing.
 */

/** A thing that can be in one such list, which alone sets these. */
export interface Aged<T> {
  older: T | undefined
  newer: T | undefined
}

export class AgeList<T extends Aged<T>> {
  #oldest: T | undefined
  #newest: T | undefined
  #size = 0

  get size(): number {
    return this.#size
  }

  get oldest(): T | undefined {
    return this.#oldest
  }

  has(thing: T): boolean {
    return thing.older !== undefined || thing === this.#oldest
  }

  /** As the newest; one that is in keeps its age. */
  add(thing: T): void {
    if (this.has(thing)) return
    const newest = this.#newest
    thing.older = newest
    if (newest) newest.newer = thing
    else this.#oldest = thing
    this.#newest = thing
    this.#size++
  }

  /** Whether it was in. Out of the list it holds on to no other. */
  delete(thing: T): boolean {
    if (!this.has(thing)) return false
    const { older, newer } = thing
    if (older) older.newer = newer
    else this.#oldest = newer
    if (newer) newer.older = older
    else this.#newest = older
    thing.older = thing.newer = undefined
    this.#size--
    return true
  }
}
