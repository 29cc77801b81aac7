/** Says when what was written is in force at every data plane of this node (D100). */

/** How long a write waits for the planes at most, in milliseconds. */
const WAIT_MS = 1000

/** A data plane that follows the change feed. */
export interface FollowingPlane {
  /** Whether it serves visitors: it has all configuration that was stored when it attached. */
  readonly isFed: boolean
  readonly feeds: readonly { readonly position: number }[]
  /** A revision that it did not acknowledge in time; nobody waits for the plane until it has. */
  missed: number | undefined
}

interface Waiting {
  readonly revision: number
  readonly resolve: (isInForce: boolean) => void
}

export class InForce {
  readonly #planes: () => Iterable<FollowingPlane>
  readonly #waiting = new Set<Waiting>()

  constructor(planes: () => Iterable<FollowingPlane>) {
    this.#planes = planes
  }

  /** Resolves with whether everything up to `revision` is in force, within a second at most. */
  async wait(revision: number): Promise<boolean> {
    const behind = this.#behind(revision)
    if (behind.every(isLate)) return behind.length === 0
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const waiting = { revision, resolve }
    this.#waiting.add(waiting)
    const overdue = setTimeout(() => {
      for (const plane of this.#behind(revision)) plane.missed = Math.max(plane.missed ?? 0, revision)
      this.progressed()
    }, WAIT_MS)
    try {
      return await promise
    } finally {
      clearTimeout(overdue)
      this.#waiting.delete(waiting)
    }
  }

  /** Call this when a plane has acknowledged changes, or is gone. */
  progressed(): void {
    for (const plane of this.#planes()) if (positionOf(plane) >= (plane.missed ?? 0)) plane.missed = undefined
    for (const { revision, resolve } of this.#waiting) {
      const behind = this.#behind(revision)
      if (behind.every(isLate)) resolve(behind.length === 0)
    }
  }

  #behind(revision: number): FollowingPlane[] {
    return [...this.#planes()].filter((plane) => plane.isFed && positionOf(plane) < revision)
  }
}

function isLate({ missed }: FollowingPlane): boolean {
  return missed !== undefined
}

/** The revision up to which a plane has everything. */
function positionOf({ feeds }: FollowingPlane): number {
  return Math.min(...feeds.map(({ position }) => position))
}
