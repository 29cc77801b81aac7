/** The traffic of the last minutes and of the last day, from regular readings of the data planes' counters. */
import { timestamp } from '../../lib/clock.ts'
import type { Logger } from '../../lib/log/create-log.ts'
import { type PlaneMetrics, sumOf, type TrafficRow } from '../../model/plane-metrics.ts'
import type { Fields } from '../resources/resource.ts'

/** The traffic of a span of time. */
export interface TrafficPoint {
  /** When the span began, in milliseconds since 1970. */
  readonly at: number
  /** How much of the span was measured: less than all of it when the server has just started. */
  readonly seconds: number
  readonly requests: number
  /** Answers of 500 and above, and requests without an answer. */
  readonly errors: number
  readonly refused: number
  readonly connections: number
  readonly bytesIn: number
  readonly bytesOut: number
  /** Requests by duration, as in `PlaneMetrics`. */
  readonly bounds: readonly number[]
  readonly steps: readonly number[]
  /** At the end of the span: open connections of visitors, and sessions and tunnels online. */
  readonly open: number
  readonly sessions: number
  readonly tunnels: number
}

/** Spans that are kept, by name. */
export const periods = {
  minutes: { everyMs: 5000, count: 180 },
  day: { everyMs: 300_000, count: 288 },
} as const

export type Period = keyof typeof periods

export function isPeriod(text: unknown): text is Period {
  return typeof text === 'string' && Object.hasOwn(periods, text)
}

interface TrafficHistoryOptions {
  readonly read: () => Promise<PlaneMetrics>
  readonly now: () => number
  /** A clock that never jumps, in milliseconds. */
  readonly steady: () => number
  readonly log: Logger
}

export class TrafficHistory {
  readonly #options: TrafficHistoryOptions
  readonly #points: Readonly<Record<Period, TrafficPoint[]>> = { minutes: [], day: [] }
  #before: { readonly metrics: PlaneMetrics; readonly at: number } | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(options: TrafficHistoryOptions) {
    this.#options = options
  }

  start(): void {
    const { log } = this.#options
    const again = (pauseMs: number): void => {
      this.#timer = setTimeout(() => {
        this.look()
          .catch((err: unknown) => log.error({ err }, 'cannot read traffic counters; the traffic history has a gap'))
          .finally(() => this.#timer && again(periods.minutes.everyMs))
      }, pauseMs).unref()
    }
    again(0)
  }

  close(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  /** Oldest first. */
  points(period: Period): readonly TrafficPoint[] {
    return this.#points[period]
  }

  /** From the next reading on, the numbers of a further plane are included, which are no traffic of now. */
  joined(metrics: PlaneMetrics): void {
    if (this.#before) this.#before = { ...this.#before, metrics: sumOf([this.#before.metrics, metrics]) }
  }

  /** Records the traffic since the last call; the first call only sets the starting point. */
  async look(): Promise<void> {
    const { read, now, steady } = this.#options
    const metrics = await read()
    const at = steady()
    const before = this.#before
    this.#before = { metrics, at }
    if (!before) return
    const since = { ...between(before.metrics, metrics), at: now(), seconds: (at - before.at) / 1000 }
    for (const [period, points] of Object.entries(this.#points)) keep(points, since, periods[period as Period]) // its keys
  }
}

/** Adds up the points of several nodes. */
export function together(nodes: readonly (readonly TrafficPoint[])[]): TrafficPoint[] {
  const byTime = new Map<number, TrafficPoint>()
  for (const point of nodes.flat()) {
    const other = byTime.get(point.at)
    const both = other && {
      ...sum(other, point),
      seconds: Math.max(point.seconds, other.seconds),
      open: other.open + point.open,
      sessions: other.sessions + point.sessions,
      tunnels: other.tunnels + point.tunnels,
    }
    byTime.set(point.at, both ?? point)
  }
  return [...byTime.values()].toSorted((a, b) => a.at - b.at)
}

/** The points of some nodes as the API shows them (`control-plane/resources/traffic-history.ts`). */
export function showTraffic(
  period: Period,
  points: ReadonlyMap<string, readonly TrafficPoint[]>,
  missing: readonly string[],
): Fields {
  return {
    interval: periods[period].everyMs / 1000,
    nodes: [...points.keys()],
    missing,
    points: together([...points.values()]).map(showPoint),
  }
}

function showPoint({ at, seconds, bytesIn, bytesOut, bounds, steps, ...plain }: TrafficPoint): Fields {
  const percentile = (part: number): number | null => {
    const ms = latencyAt(bounds, steps, part)
    return ms === null ? null : Math.round(ms * 10) / 10
  }
  return {
    ...plain,
    at: timestamp(at),
    seconds: Math.round(seconds * 1000) / 1000,
    bytes_in: bytesIn,
    bytes_out: bytesOut,
    p50_ms: percentile(0.5),
    p99_ms: percentile(0.99),
  }
}

type Counted = Omit<TrafficPoint, 'at' | 'seconds'>

function between(before: PlaneMetrics, after: PlaneMetrics): Counted {
  const known = new Map(before.edges.map((row) => [row.edge, row]))
  const growthOf = (read: (row: TrafficRow) => number): number =>
    // A deleted edge has no row any more; a counter that restarted at zero has not grown.
    after.edges.reduce((all, row) => all + growth(read(row), read(known.get(row.edge) ?? nobody)), 0)
  const { latency, present } = after
  return {
    requests: growthOf(({ requests }) => requests.reduce((a, b) => a + b, 0)),
    errors: growthOf(({ requests }) => (requests[0] ?? 0) + (requests[5] ?? 0)),
    refused: growthOf(({ refused }) => refused),
    connections: growthOf(({ connections }) => connections),
    bytesIn: growthOf(({ bytesIn }) => bytesIn),
    bytesOut: growthOf(({ bytesOut }) => bytesOut),
    bounds: latency.bounds,
    steps: latency.steps.map((count, i) => growth(count, before.latency.steps[i] ?? 0)),
    open: after.edges.reduce((all, { open }) => all + open, 0),
    sessions: present.sessions,
    tunnels: present.tunnels,
  }
}

const nobody: TrafficRow = {
  ...{ edge: '', address: '', connections: 0, open: 0, bytesIn: 0, bytesOut: 0, requestMs: 0, refused: 0 },
  requests: [],
}

function growth(after: number, before: number): number {
  return Math.max(0, after - before)
}

function keep(points: TrafficPoint[], since: TrafficPoint, { everyMs, count }: (typeof periods)[Period]): void {
  const at = Math.floor(since.at / everyMs) * everyMs
  // After the clock was set back, points from the future are dropped.
  while ((points.at(-1)?.at ?? at) > at) points.pop()
  const last = points.at(-1)
  if (last?.at === at) points[points.length - 1] = { ...sum(last, since), seconds: last.seconds + since.seconds }
  else points.push({ ...since, at })
  while (points.length > count || (points[0]?.at ?? at) <= at - count * everyMs) points.shift()
}

/** Adds up counters; gauges are those of `b`. */
function sum(a: TrafficPoint, b: TrafficPoint): TrafficPoint {
  const [longer, shorter] = a.steps.length < b.steps.length ? [b, a] : [a, b]
  return {
    ...b,
    at: a.at,
    requests: a.requests + b.requests,
    errors: a.errors + b.errors,
    refused: a.refused + b.refused,
    connections: a.connections + b.connections,
    bytesIn: a.bytesIn + b.bytesIn,
    bytesOut: a.bytesOut + b.bytesOut,
    bounds: longer.bounds,
    steps: longer.steps.map((count, i) => count + (shorter.steps[i] ?? 0)),
  }
}

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
