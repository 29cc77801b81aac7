/** What the control plane keeps up to date here, by name. */
import { isDeepStrictEqual } from 'node:util'
import type { MirroredChange } from '../../link/planes/plane-calls.ts'

export class MirroredMap<Item extends { readonly name: string }> {
  readonly #byName = new Map<string, Item>()

  /** Items that are sent again unchanged stay the same objects, for what others keep beside them. */
  take({ isAll, removed, set }: MirroredChange<Item>): void {
    const kept = set.map((each) => {
      const known = this.#byName.get(each.name)
      return known && isDeepStrictEqual(known, each) ? known : each
    })
    if (isAll) this.#byName.clear()
    for (const name of removed) this.#byName.delete(name)
    for (const each of kept) this.#byName.set(each.name, each)
  }

  get(name: string): Item | undefined {
    return this.#byName.get(name)
  }

  values(): Iterable<Item> {
    return this.#byName.values()
  }
}
