/** Things by id, kept in the order of their ids, so that a page of them costs no more than its length. */

interface Page {
  readonly beforeId?: string
  readonly limit: number
}

export class Shelf<T> {
  readonly #byId = new Map<string, T>()
  /** Ascending. New ids are the greatest; an agent that returns brings an older one. */
  readonly #ids: string[] = []

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
    if (!this.#byId.has(id)) insert(this.#ids, id)
    this.#byId.set(id, thing)
  }

  delete(id: string): void {
    if (!this.#byId.delete(id)) return
    this.#ids.splice(placeOf(this.#ids, id), 1)
  }

  /** Newest first, at most `limit` with ids before `beforeId`, which need not be there. */
  page({ beforeId, limit }: Page): T[] {
    const page: T[] = []
    let at = beforeId === undefined ? this.#ids.length : placeOf(this.#ids, beforeId)
    while (--at >= 0 && page.length < limit) {
      const thing = this.#byId.get(this.#ids[at] ?? '')
      if (thing !== undefined) page.push(thing)
    }
    return page
  }
}

function insert(ids: string[], id: string): void {
  const last = ids.at(-1)
  if (last === undefined || last < id) ids.push(id)
  else ids.splice(placeOf(ids, id), 0, id)
}

/** Where `id` stands in ascending `ids`, or would stand. */
function placeOf(ids: readonly string[], id: string): number {
  let low = 0
  let high = ids.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((ids[middle] ?? '') < id) low = middle + 1
    else high = middle
  }
  return low
}
