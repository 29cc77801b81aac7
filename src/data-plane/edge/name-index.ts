/** Finds who serves a name: the holder of exactly that name, else of the longest wildcard above it. */

/**
 * `*.example.com` covers every name below `example.com`, at any depth, and not `example.com` itself.
 *
 * Names from hostports and from hellos are normalised: lower case, in punycode, without a trailing dot.
 */
export class NameIndex<T> {
  readonly #exact = new Map<string, T>()
  /** By the part after `*.`, so that a request for the literal name `*.example.com` finds nothing special. */
  readonly #below = new Map<string, T>()
  readonly #isOwn: (name: string) => boolean

  /** No wildcard covers a name that `isOwn` (D105). */
  constructor(isOwn: (name: string) => boolean = () => false) {
    this.#isOwn = isOwn
  }

  get size(): number {
    return this.#exact.size + this.#below.size
  }

  /** Sets the value of exactly this name or wildcard. */
  set(name: string, value: T): void {
    if (isWildcard(name)) this.#below.set(name.slice(2), value)
    else this.#exact.set(name, value)
  }

  /** The value of exactly this name or wildcard. */
  get(name: string): T | undefined {
    return isWildcard(name) ? this.#below.get(name.slice(2)) : this.#exact.get(name)
  }

  delete(name: string): boolean {
    return isWildcard(name) ? this.#below.delete(name.slice(2)) : this.#exact.delete(name)
  }

  /** The value for this name. Costs one look-up per label, however many names there are. */
  find(name: string): T | undefined {
    const exact = this.#exact.get(name)
    if (exact !== undefined || this.#below.size === 0 || this.#isOwn(name)) return exact
    for (let dot = name.indexOf('.'); dot > 0; dot = name.indexOf('.', dot + 1)) {
      const below = this.#below.get(name.slice(dot + 1))
      if (below !== undefined) return below
    }
    return undefined
  }
}

/**
 * The longest wildcard in `names` that covers `name`; undefined when none does, or when `name` itself is in the list.
 */
export function wildcardAbove(name: string, names: readonly string[]): string | undefined {
  let longest: string | undefined
  for (const each of names) {
    if (each === name) return undefined
    if (isWildcard(each) && name.endsWith(each.slice(1)) && each.length > (longest?.length ?? 0)) longest = each
  }
  return longest
}

function isWildcard(name: string): boolean {
  return name.startsWith('*.')
}
