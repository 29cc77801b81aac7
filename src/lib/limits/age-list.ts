/** A linked list from the oldest to the newest, with the links in its members. */

/** A thing that can be in one such list; only the list sets these fields. */
export interface Aged<T> {
  older: T | undefined
  newer: T | undefined
}

/**
 * A Set or a Map would do the same, but one that changes with every connection or request is rebuilt often, while this list
 * allocates nothing.
 */
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

  /** From the oldest to the newest. */
  *[Symbol.iterator](): Generator<T> {
    for (let thing = this.#oldest; thing; thing = thing.newer) yield thing
  }

  /** Adds `thing` as the newest; if it is in the list already, it keeps its place. */
  add(thing: T): void {
    if (this.has(thing)) return
    const newest = this.#newest
    thing.older = newest
    if (newest) newest.newer = thing
    else this.#oldest = thing
    this.#newest = thing
    this.#size++
  }

  /** Removes `thing` and clears its links; returns whether it was in the list. */
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
