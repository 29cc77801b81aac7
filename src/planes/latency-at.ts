/** Reads a percentile from counts in steps. */

/**
 * The value that the share `part` of all stayed within, by its place between the bounds of its step; null of none. What lies
 * beyond the last bound is told as that bound.
 */
export function latencyAt(bounds: readonly number[], steps: readonly number[], part: number): number | null {
  const wanted = part * steps.reduce((all, count) => all + count, 0)
  if (wanted === 0) return null
  let passed = 0
  for (const [i, count] of steps.entries()) {
    if (passed + count >= wanted && count > 0) {
      const [from, to] = [bounds[i - 1] ?? 0, bounds[i] ?? bounds.at(-1) ?? 0]
      return from + ((wanted - passed) / count) * (to - from)
    }
    passed += count
  }
  return bounds.at(-1) ?? null
}
