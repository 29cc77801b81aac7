/** A map by id that keeps its ids sorted, so that the cost of a page depends only on its length. */

interface Page {
  readonly beforeId?: string
  readonly limit: number
}

/** Up to this many out-of-order ids are inserted one by one; more are cheaper to sort together with all others. */
const FEW = 16

export class SortedIdMap<T> {
  readonly #byId = new Map<string, T>()
  /** Ascending. A new id is usually the greatest; an agent that reconnects has an older one. */
  #ids: string[] = []
  /**
   * Ids added out of order, sorted in when a page is read. Reading the store newest first adds all ids that way, and so
   * do agents that come back from a node that died.
   */
  readonly #late = new Set<string>()

  get size(): number {
    return this.#byId.size
  }

  get(id: string): T | undefined {
    return this.#byId.get(id)
  }

  values(): Iterable<T> {
    return this.#byId.values()
  }

  add(id: string, thing: T): void {
    if (!this.#byId.has(id)) {
      const last = this.#ids.at(-1)
      if (last === undefined || last < id) this.#ids.push(id)
      else this.#late.add(id)
    }
    this.#byId.set(id, thing)
  }

  delete(id: string): void {
    if (!this.#byId.delete(id) || this.#late.delete(id)) return
    this.#ids.splice(indexOf(this.#ids, id), 1)
  }

  /** Newest first, at most `limit`, with ids less than `beforeId`, which need not exist. */
  page({ beforeId, limit }: Page): T[] {
    const ids = this.#inOrder()
    const page: T[] = []
    let at = beforeId === undefined ? ids.length : indexOf(ids, beforeId)
    while (--at >= 0 && page.length < limit) {
      const thing = this.#byId.get(ids[at] ?? '')
      if (thing !== undefined) page.push(thing)
    }
    return page
  }

  #inOrder(): string[] {
    if (this.#late.size > FEW) this.#ids = [...this.#ids, ...this.#late].sort()
    else for (const id of this.#late) this.#ids.splice(indexOf(this.#ids, id), 0, id)
    this.#late.clear()
    return this.#ids
  }
}

/** The index of `id` in ascending `ids`, or where it would be inserted. */
function indexOf(ids: readonly string[], id: string): number {
  let low = 0
  let high = ids.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((ids[middle] ?? '') < id) low = middle + 1
    else high = middle
  }
  return low
}
