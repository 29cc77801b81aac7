/** The headers of one HTTP message, in their order: names keep their spelling and are compared without regard to case. */
import { type HeaderName, headerName } from './header-name.ts'
import { isFieldContent } from './http-header.ts'

export class HeaderList {
  /** Side by side, since most headers are only copied. */
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

  /** Whether all values are known to be fit to be sent: whoever sends them need not look at them again. */
  get isChecked(): boolean {
    return this.#isChecked
  }

  /** The name and the value of number `i`, which must be less than `size`: cheaper than the iterator. */
  nameAt(i: number): HeaderName {
    return this.#names[i] as HeaderName // as the caller was told
  }

  valueAt(i: number): string {
    return this.#values[i] ?? ''
  }

  /** Whether there is a header of this name, which must be lower case here and in all that follows. */
  has(key: string): boolean {
    return this.#find(key) >= 0
  }

  /** The first value, as the sender ordered them. */
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

  /** Appends, also when there is one of that name. */
  add(name: string, value: string): void {
    this.#isChecked &&= isFieldContent(value)
    this.#names.push(headerName(name))
    this.#values.push(value)
  }

  /** As `add`, for a value that holds nothing but field content of RFC 9110 §5.5. */
  addChecked(name: HeaderName, value: string): void {
    this.#names.push(name)
    this.#values.push(value)
  }

  /** Appends all of `others`. */
  addAll(others: HeaderList): void {
    this.#isChecked &&= others.#isChecked
    for (let i = 0; i < others.#names.length; i++) this.addChecked(others.nameAt(i), others.valueAt(i))
  }

  /** As `add`, in front of all others. */
  prepend(name: string, value: string): void {
    this.#isChecked &&= isFieldContent(value)
    this.#names.unshift(headerName(name))
    this.#values.unshift(value)
  }

  /** Puts one in the place of all of that name. */
  set(name: string, value: string): void {
    this.remove(headerName(name).key)
    this.add(name, value)
  }

  /** As `set`, for a value as `addChecked` takes it. */
  setChecked(name: HeaderName, value: string): void {
    this.remove(name.key)
    this.addChecked(name, value)
  }

  /** Removes all of that name. */
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
    // One by one: to set the length of an array leaves compiled code, which costs more than all the rest of this.
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
