/** Counts how long requests took, in fixed steps: one addition per request, and no allocation. */

/** Inclusive upper bounds in milliseconds; requests that took longer count above the last one. */
export const latencyBounds: readonly number[] = [
  1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000,
]

export class LatencyCount {
  /** Requests by the first bound that they stayed within; the last step is for those beyond all bounds. */
  readonly steps = new Float64Array(latencyBounds.length + 1)
  /** The total time of all requests, in milliseconds. */
  sumMs = 0

  note(ms: number): void {
    let step = 0
    // Most requests fall into the first few steps.
    while (step < latencyBounds.length && ms > (latencyBounds[step] ?? 0)) step++
    this.steps[step] = (this.steps[step] ?? 0) + 1
    this.sumMs += ms
  }
}
