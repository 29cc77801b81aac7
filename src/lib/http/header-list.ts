/** The headers of one HTTP message, in order. */
import { type HeaderName, headerName } from './header-name.ts'
import { isFieldContent } from './http-header.ts'

/** Names keep their spelling and are compared case-insensitively. */
export class HeaderList {
  /** Names and values in two arrays, which is cheap to copy: most headers are only passed on. */
  readonly #names: HeaderName[] = []
  readonly #values: string[] = []
  #isChecked = true

  static of(pairs: Iterable<readonly [string, string]>): HeaderList {
    const list = new HeaderList()
    for (const [name, value] of pairs) list.add(name, value)
    return list
  }

  get size(): number {
    return this.#names.length
  }

  /** Whether all values are known to be valid, so that they need no check before they are sent. */
  get isChecked(): boolean {
    return this.#isChecked
  }

  /** The name at index `i`, which must be less than `size`. With `valueAt`, cheaper than the iterator. */
  nameAt(i: number): HeaderName {
    return this.#names[i] as HeaderName // `i` is in range, see above
  }

  valueAt(i: number): string {
    return this.#values[i] ?? ''
  }

  /** Whether there is a header with this name. Here and below, a `key` must be in lower case. */
  has(key: string): boolean {
    return this.#find(key) >= 0
  }

  /** The first value of this name. */
  get(key: string): string | undefined {
    const at = this.#find(key)
    return at < 0 ? undefined : this.#values[at]
  }

  count(key: string): number {
    let count = 0
    for (let i = 0; i < this.#names.length; i++) if (this.#names[i]?.key === key) count++
    return count
  }

  all(key: string): string[] {
    return this.#values.filter((_, i) => this.#names[i]?.key === key)
  }

  /** Appends a header, even when there is one with that name. */
  add(name: string, value: string): void {
    this.#isChecked &&= isFieldContent(value)
    this.#names.push(headerName(name))
    this.#values.push(value)
  }

  /** Like `add`, for a value that is known to be field content (RFC 9110 §5.5). */
  addChecked(name: HeaderName, value: string): void {
    this.#names.push(name)
    this.#values.push(value)
  }

  /** Appends all of `others`. */
  addAll(others: HeaderList): void {
    this.#isChecked &&= others.#isChecked
    for (let i = 0; i < others.#names.length; i++) this.addChecked(others.nameAt(i), others.valueAt(i))
  }

  /** Like `add`, but before all others. */
  prepend(name: string, value: string): void {
    this.#isChecked &&= isFieldContent(value)
    this.#names.unshift(headerName(name))
    this.#values.unshift(value)
  }

  /** Replaces all headers with that name by this one, at the end. */
  set(name: string, value: string): void {
    this.remove(headerName(name).key)
    this.add(name, value)
  }

  /** Like `set`, for a value that `addChecked` accepts. */
  setChecked(name: HeaderName, value: string): void {
    this.remove(name.key)
    this.addChecked(name, value)
  }

  /** Puts what `change` makes of each value of this name in its place; it must stay field content, and `''` removes it. */
  change(key: string, change: (value: string) => string): void {
    for (let i = this.#find(key); i >= 0 && i < this.#names.length; i++) {
      if (this.#names[i]?.key !== key) continue
      const before = this.valueAt(i)
      const value = change(before)
      if (value === before) continue
      this.#values[i] = value
      if (value !== '') continue
      this.#names.splice(i, 1)
      this.#values.splice(i--, 1)
    }
  }

  /** Removes all headers with that name. */
  remove(key: string): void {
    if (this.has(key)) this.removeWhere((name) => name.key === key)
  }

  removeWhere(isUnwanted: (name: HeaderName) => boolean): void {
    let kept = 0
    for (let i = 0; i < this.#names.length; i++) {
      const name = this.nameAt(i)
      if (isUnwanted(name)) continue
      if (kept < i) {
        this.#names[kept] = name
        this.#values[kept] = this.valueAt(i)
      }
      kept++
    }
    // One by one: setting an array's length leaves optimised code, which costs more than everything else here.
    while (this.#names.length > kept) {
      this.#names.pop()
      this.#values.pop()
    }
  }

  clone(): HeaderList {
    const list = new HeaderList()
    list.addAll(this)
    return list
  }

  *[Symbol.iterator](): Generator<[string, string]> {
    for (let i = 0; i < this.size; i++) yield [this.nameAt(i).spelling, this.valueAt(i)]
  }

  #find(key: string): number {
    for (let i = 0; i < this.#names.length; i++) if (this.#names[i]?.key === key) return i
    return -1
  }
}
