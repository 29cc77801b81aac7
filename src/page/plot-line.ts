/** Turns values over time into the path of a line, in the coordinates of a plot. */

interface TimedValue {
  /** In milliseconds since 1970. */
  readonly at: number
  /** Null where there is none, such as the latency of no request. */
  readonly value: number | null
}

export interface PlotFrame {
  readonly from: number
  readonly to: number
  /** The value at the upper edge. */
  readonly top: number
  /** Milliseconds from one value to the next; where they are further apart, the line has a gap. */
  readonly stepMs: number
}

/** The coordinates go from 0 to these. */
export const PLOT_WIDTH = 1000
export const PLOT_HEIGHT = 100

/** The `d` attribute of the path; empty without values. */
export function plotLine(values: readonly TimedValue[], { from, to, top, stepMs }: PlotFrame): string {
  let path = ''
  let last: number | undefined
  for (const { at, value } of values) {
    if (value === null || at < from || at > to) {
      last = undefined
      continue
    }
    const x = ((at - from) / (to - from)) * PLOT_WIDTH
    const y = PLOT_HEIGHT - (Math.min(value, top) / top) * PLOT_HEIGHT
    const isJoined = last !== undefined && at - last <= 2 * stepMs
    // A single value is drawn as a short dash, since a point would be invisible.
    path += isJoined ? `L${round(x)} ${round(y)}` : `M${round(x)} ${round(y)}h1`
    last = at
  }
  return path
}

/** The least of 1, 2 and 5 times a power of ten that is not below the largest value; 1 when there is none. */
export function plotTop(values: readonly TimedValue[]): number {
  const largest = values.reduce((most, { value }) => Math.max(most, value ?? 0), 0)
  if (largest <= 0) return 1
  const power = 10 ** Math.floor(Math.log10(largest))
  const steps = [1, 2, 5, 10].map((step) => step * power)
  return steps.find((step) => step >= largest) ?? largest
}

/** The value nearest in time to `place`, a position between the left edge (0) and the right one (1). */
export function nearestValue<T extends { readonly at: number }>(
  values: readonly T[],
  { from, to }: Pick<PlotFrame, 'from' | 'to'>,
  position: number,
): T | undefined {
  const at = from + position * (to - from)
  let nearest: T | undefined
  for (const each of values) {
    if (each.at < from) continue
    if (!nearest || Math.abs(each.at - at) < Math.abs(nearest.at - at)) nearest = each
  }
  return nearest
}

function round(coordinate: number): number {
  return Math.round(coordinate * 10) / 10
}
