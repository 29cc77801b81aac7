/** Sets by key; empty sets are not kept. */
export class Groups<T> {
  readonly #byKey = new Map<string, Set<T>>()

  /** The members of a set, in the order in which they were added. */
  get(key: string): ReadonlySet<T> {
    return this.#byKey.get(key) ?? none
  }

  has(key: string): boolean {
    return this.#byKey.has(key)
  }

  keys(): Iterable<string> {
    return this.#byKey.keys()
  }

  entries(): Iterable<readonly [key: string, group: ReadonlySet<T>]> {
    return this.#byKey.entries()
  }

  add(key: string, value: T): void {
    const group = this.#byKey.get(key)
    if (group) group.add(value)
    else this.#byKey.set(key, new Set([value]))
  }

  delete(key: string, value: T): void {
    const group = this.#byKey.get(key)
    group?.delete(value)
    if (group?.size === 0) this.#byKey.delete(key)
  }

  clear(): void {
    this.#byKey.clear()
  }
}

const none: ReadonlySet<never> = new Set()
