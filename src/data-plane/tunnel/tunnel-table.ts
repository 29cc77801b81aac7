/** The tunnels of one session, by the agent's ids, and those that are being started. */
import type { Tunnel } from './session-types.ts'

export class TunnelTable {
  readonly #tunnels = new Map<string, Tunnel>()
  readonly #reserved = new Set<string>()
  #starting = 0

  /** Number of tunnels, including those that are being started. */
  get size(): number {
    return this.#tunnels.size + this.#starting
  }

  get(wireId: string): Tunnel | undefined {
    return this.#tunnels.get(wireId)
  }

  values(): Tunnel[] {
    return [...this.#tunnels.values()]
  }

  add(tunnel: Tunnel): void {
    this.#tunnels.set(tunnel.wireId, tunnel)
  }

  delete(tunnel: Tunnel): void {
    this.#tunnels.delete(tunnel.wireId)
  }

  /** Reserves room while a tunnel is started; undefined when its id is taken. `''` is an id that is not chosen yet. */
  reserve(wireId: string): (() => void) | undefined {
    if (wireId !== '') {
      if (this.#tunnels.has(wireId) || this.#reserved.has(wireId)) return undefined
      this.#reserved.add(wireId)
    }
    this.#starting++
    return () => {
      this.#starting--
      this.#reserved.delete(wireId)
    }
  }
}
