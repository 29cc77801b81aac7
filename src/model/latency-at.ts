/** Estimates a percentile from the counts of a histogram. */

/**
 * The value within which the share `part` of all counts lies, interpolated between the bounds of its step; null without counts.
 * A value beyond the last bound is reported as that bound.
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
