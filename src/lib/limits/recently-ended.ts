/** Remembers what ended recently, so that a lookup that began before does not bring it back. */

/** How many endings are distinguished. Beyond that, anything may have ended, which costs others a second lookup. */
const MAX_NAMED = 10_000

export class RecentlyEnded {
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

  /** Records that something with this name ended. */
  note(name: string): void {
    if (this.#named.size >= this.#maxNamed) this.noteAll()
    this.#named.set(name, ++this.#moment)
  }

  /** Records that anything may have ended. */
  noteAll(): void {
    this.#allAt = ++this.#moment
    this.#named.clear()
  }

  /** Whether something with one of these names ended after `moment`. */
  hasEnded(names: readonly string[], moment: number): boolean {
    return this.#allAt > moment || names.some((name) => (this.#named.get(name) ?? 0) > moment)
  }
}
