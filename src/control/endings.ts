/** What ended lately, so that a lookup that began before does not bring it back. */

/** Endings that are told apart. Beyond it all of them count as one, which costs others a second lookup. */
const MAX_NAMED = 10_000

export class Endings {
  readonly #maxNamed: number
  readonly #named = new Map<string, number>()
  #moment = 0
  #allAt = 0

  constructor(maxNamed = MAX_NAMED) {
    this.#maxNamed = maxNamed
  }

  /** This moment, for a lookup that begins now. */
  get moment(): number {
    return this.#moment
  }

  /** Notes that what goes by this name ended. */
  note(name: string): void {
    if (this.#named.size >= this.#maxNamed) this.noteAll()
    this.#named.set(name, ++this.#moment)
  }

  /** Notes that anything may have ended. */
  noteAll(): void {
    this.#allAt = ++this.#moment
    this.#named.clear()
  }

  /** Whether something that goes by one of `names` ended after `moment`. */
  hasEnded(names: readonly string[], moment: number): boolean {
    return this.#allAt > moment || names.some((name) => (this.#named.get(name) ?? 0) > moment)
  }
}
