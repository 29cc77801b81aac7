/**
 * Data planes that stop at the same time: agents stay at each until the visitors at all planes are served, since any plane's
 * visitors may use them.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { WorkerPeers } from './worker-peers.ts'

/** How often to look, in milliseconds. */
const LOOK_MS = 20

/** How long this plane must have been unneeded before it stops, in milliseconds: planes are told to stop one after the other. */
const QUIET_MS = 100

export class DrainTogether {
  readonly #peers: WorkerPeers
  readonly #draining = new Set<string>()
  /** Planes that have begun to drain, and may be done. */
  readonly #leaving = new Set<string>()

  /** Calls `onBegun` for every other plane that begins to drain. */
  constructor(peers: WorkerPeers, onBegun: (planeId: string) => void = () => {}) {
    this.#peers = peers
    peers.serve('drain.begun', (_, from) => {
      this.#draining.add(from)
      this.#leaving.add(from)
      onBegun(from)
    })
    peers.serve('drain.done', (_, from) => void this.#draining.delete(from))
  }

  /** Tells the others that this plane begins to drain. */
  begun(): void {
    this.#peers.tellAll('drain.begun', null)
  }

  /** Tells the others that the visitors at this plane are gone. */
  done(): void {
    this.#peers.tellAll('drain.done', null)
  }

  /** Whether another plane does not drain. */
  get isSurvived(): boolean {
    return this.#peers.others().some((plane) => !this.#leaving.has(plane))
  }

  /** Resolves when no other plane needs this one, or at `until`; `carried` counts the streams it carries for others. */
  async othersDone(until: number, carried: () => number): Promise<void> {
    let quietSince = performance.now()
    // Without other planes of this node, visitors at other nodes may need this one.
    while (this.#peers.others().length > 0 || carried() > 0) {
      const now = performance.now()
      const isNeeded = carried() > 0 || this.#peers.others().some((plane) => this.#draining.has(plane))
      if (isNeeded) quietSince = now
      if (now >= until || now - quietSince >= QUIET_MS) return
      await pause(LOOK_MS)
    }
  }
}
