/** For the tests here: pieces of work that are held until the test lets them go, in the order in which they began. */

/**
 * @example
 * const work = new HeldWork()
 * const part = new Part({ ask: async (name) => work.begin(name) })
 * attack(part)
 * work.letGo(10)
 */
export class HeldWork {
  /** The names of all that began. */
  readonly begun: string[] = []
  readonly #held: (() => void)[] = []

  /** Resolves when the test lets this piece go. */
  begin(name: string): Promise<void> {
    this.begun.push(name)
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#held.push(resolve)
    return promise
  }

  /** How many are under way. */
  get underWay(): number {
    return this.#held.length
  }

  /** Lets the oldest go; resolves when what follows at once has begun. */
  async letGo(count = this.#held.length): Promise<void> {
    for (const go of this.#held.splice(0, count)) go()
    await new Promise((resolve) => setImmediate(resolve))
  }
}
