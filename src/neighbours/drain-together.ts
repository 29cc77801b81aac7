/**
 * Data planes that stop at the same time: the agents of each stay until the visitors at all of them are served, who may
 * be served through any of them.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { type Neighbours, tellAll } from './neighbours.ts'

/** How often to look, in milliseconds. */
const LOOK_MS = 20

/** How long nobody may need us before we are sure, in milliseconds: all are told to stop, though not in one instant. */
const QUIET_MS = 100

export class DrainTogether {
  readonly #neighbours: Neighbours
  readonly #draining = new Set<string>()
  /** Those that have begun, and may have done. */
  readonly #leaving = new Set<string>()

  /** `onBegun` is told of every other plane that begins. */
  constructor(neighbours: Neighbours, onBegun: (planeId: string) => void = () => {}) {
    this.#neighbours = neighbours
    neighbours.serve('drain.begun', (_, from) => {
      this.#draining.add(from)
      this.#leaving.add(from)
      onBegun(from)
    })
    neighbours.serve('drain.done', (_, from) => void this.#draining.delete(from))
  }

  /** Visitors at this plane are let go from now on. */
  begun(): void {
    tellAll(this.#neighbours, 'drain.begun', null)
  }

  /** The visitors at this plane are gone. */
  done(): void {
    tellAll(this.#neighbours, 'drain.done', null)
  }

  /** Whether another plane goes on. */
  get isSurvived(): boolean {
    return this.#neighbours.others().some((plane) => !this.#leaving.has(plane))
  }

  /** Resolves when no other plane needs this one, or at `until`; `carried` counts what it carries for others. */
  async othersDone(until: number, carried: () => number): Promise<void> {
    let quietSince = performance.now()
    // Without other planes of this node, visitors at other nodes may need this one.
    while (this.#neighbours.others().length > 0 || carried() > 0) {
      const now = performance.now()
      const isNeeded = carried() > 0 || this.#neighbours.others().some((plane) => this.#draining.has(plane))
      if (isNeeded) quietSince = now
      if (now >= until || now - quietSince >= QUIET_MS) return
      await pause(LOOK_MS)
    }
  }
}
