/** Counts how long requests took, in fixed steps: an addition for each, and nothing that is made. */

/** Upper bounds in milliseconds, each included; what took longer than the last counts above all of them. */
export const latencyBounds: readonly number[] = [
  1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000,
]

export class LatencyCount {
  /** Requests by the first bound that they stayed within; the last is for those beyond. */
  readonly steps = new Float64Array(latencyBounds.length + 1)
  /** Of all of them together, in milliseconds. */
  sumMs = 0

  note(ms: number): void {
    let step = 0
    // Most are done within the first few.
    while (step < latencyBounds.length && ms > (latencyBounds[step] ?? 0)) step++
    this.steps[step] = (this.steps[step] ?? 0) + 1
    this.sumMs += ms
  }
}
