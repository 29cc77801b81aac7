/** The headers of one HTTP message, in their order: names keep their spelling and are compared without regard to case. */

export class HeaderList {
  /** Lower-cased names, names as they were spelled, values: three lists side by side, since most headers are only copied. */
  readonly #keys: string[] = []
  readonly #names: string[] = []
  readonly #values: string[] = []

  static of(pairs: Iterable<readonly [string, string]>): HeaderList {
    const list = new HeaderList()
    for (const [name, value] of pairs) list.add(name, value)
    return list
  }

  get size(): number {
    return this.#keys.length
  }

  /** Whether there is a header of this name, which must be lower case here and in all that follows. */
  has(key: string): boolean {
    return this.#keys.includes(key)
  }

  /** The first value, as the sender ordered them. */
  get(key: string): string | undefined {
    const at = this.#keys.indexOf(key)
    return at < 0 ? undefined : this.#values[at]
  }

  all(key: string): string[] {
    return this.#values.filter((_, i) => this.#keys[i] === key)
  }

  /** Appends, also when there is one of that name. */
  add(name: string, value: string): void {
    this.#keys.push(name.toLowerCase())
    this.#names.push(name)
    this.#values.push(value)
  }

  /** As `add`, in front of all others. */
  prepend(name: string, value: string): void {
    this.#keys.unshift(name.toLowerCase())
    this.#names.unshift(name)
    this.#values.unshift(value)
  }

  /** Puts one in the place of all of that name. */
  set(name: string, value: string): void {
    this.remove(name.toLowerCase())
    this.add(name, value)
  }

  /** Removes all of that name. */
  remove(key: string): void {
    if (!this.#keys.includes(key)) return
    this.removeWhere((each) => each === key)
  }

  removeWhere(isUnwanted: (key: string) => boolean): void {
    let kept = 0
    for (let i = 0; i < this.#keys.length; i++) {
      const key = this.#keys[i] ?? ''
      if (isUnwanted(key)) continue
      this.#keys[kept] = key
      this.#names[kept] = this.#names[i] ?? ''
      this.#values[kept] = this.#values[i] ?? ''
      kept++
    }
    this.#keys.length = kept
    this.#names.length = kept
    this.#values.length = kept
  }

  clone(): HeaderList {
    const list = new HeaderList()
    list.#keys.push(...this.#keys)
    list.#names.push(...this.#names)
    list.#values.push(...this.#values)
    return list
  }

  /** Calls `visit` for each in order: cheaper than the iterator, for what runs with every request. */
  forEach(visit: (key: string, value: string, name: string) => void): void {
    for (let i = 0; i < this.#keys.length; i++) {
      visit(this.#keys[i] ?? '', this.#values[i] ?? '', this.#names[i] ?? '')
    }
  }

  *[Symbol.iterator](): Generator<[string, string]> {
    for (let i = 0; i < this.#names.length; i++) yield [this.#names[i] ?? '', this.#values[i] ?? '']
  }
}
