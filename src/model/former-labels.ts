/** Remembers the label tunnels of ended sessions, so that an agent that comes back gets the same ids. */

export interface FormerLabelTunnel {
  readonly id: string
  /** In milliseconds since 1970. */
  readonly startedAt: number
  readonly labels: Readonly<Record<string, string>>
}

/** The most tunnels remembered in all; the oldest sessions are forgotten first. */
const MAX_REMEMBERED = 100_000

export class FormerLabels {
  readonly #bySession = new Map<string, readonly FormerLabelTunnel[]>()
  readonly #max: number
  #count = 0

  constructor({ max = MAX_REMEMBERED }: { max?: number } = {}) {
    this.#max = max
  }

  get count(): number {
    return this.#count
  }

  remember(sessionId: string, tunnels: readonly FormerLabelTunnel[]): void {
    this.take(sessionId)
    if (tunnels.length === 0) return
    this.#bySession.set(sessionId, tunnels)
    this.#count += tunnels.length
    for (const oldest of this.#bySession.keys()) {
      if (this.#count <= this.#max) break
      this.take(oldest)
    }
  }

  /** Returns the tunnels of the session, and forgets them. */
  take(sessionId: string): readonly FormerLabelTunnel[] {
    const found = this.#bySession.get(sessionId) ?? []
    this.#bySession.delete(sessionId)
    this.#count -= found.length
    return found
  }
}
