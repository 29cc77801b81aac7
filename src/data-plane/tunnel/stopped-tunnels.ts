/** Tunnels that the server stopped; their agents may have missed that, and must not start them again. */

/** Most ids that are kept; the oldest are forgotten first. */
const MAX_STOPPED = 10_000

export class StoppedTunnels {
  readonly #ids = new Set<string>()

  has(id: string): boolean {
    return this.#ids.has(id)
  }

  add(id: string): void {
    this.#ids.add(id)
    const [oldest] = this.#ids
    if (this.#ids.size > MAX_STOPPED && oldest !== undefined) this.#ids.delete(oldest)
  }
}
