/** The numbers of a data plane, for the metrics, and how those of several planes add up. */

/** The counts of one edge or endpoint. */
export interface TrafficRow {
  readonly edge: string
  readonly address: string
  readonly connections: number
  readonly open: number
  readonly bytesIn: number
  readonly bytesOut: number
  readonly requests: readonly number[]
  readonly requestMs: number
  readonly refused: number
}

/** One listener's caps. */
export interface ListenerMetrics {
  readonly door: string
  readonly open: number
  /** How often each cap has refused, by the name of its setting. */
  readonly refusals: readonly (readonly [setting: string, count: number])[]
}

/** Traffic to and from other planes and nodes. */
export interface RemoteMetrics {
  readonly totals: {
    /** Connections to tunnels that went through another plane. */
    readonly relayed: number
    /**
     * Connections to tunnels at another node; those that failed since that node could not be reached; and those to tunnels
     * here for visitors of other nodes.
     */
    readonly toNodes: number
    readonly unreachedNodes: number
    readonly fromNodes: number
    /** Look-ups of what other nodes have, and those that failed. */
    readonly lookUps: number
    readonly failedLookUps: number
  }
  readonly present: {
    /**
     * Connections between this node and others, by the side that opened them, and the streams of visitors on these
     * connections.
     */
    readonly linksToNodes: number
    readonly linksFromNodes: number
    readonly streamsToNodes: number
    readonly streamsFromNodes: number
  }
}

export interface PlaneMetrics {
  /** By edge, with all endpoints of agents as one; a bounded number of rows. */
  readonly edges: readonly TrafficRow[]
  /** By endpoint of an agent; a bounded number of rows. */
  readonly endpoints: readonly TrafficRow[]
  /**
   * How many requests took at most so long: each counts at the first of `bounds`, in milliseconds, that it stayed within.
   * One more step counts slower requests.
   */
  readonly latency: { readonly bounds: readonly number[]; readonly steps: readonly number[]; readonly sumMs: number }
  readonly doors: readonly ListenerMetrics[]
  /** Addresses that seem to be proxies but are not trusted, with their requests; a plane of another version may lack it. */
  readonly proxies?: readonly { readonly address: string; readonly requests: number }[]
  /** Numbers that add up over planes, and over a plane's life. */
  readonly totals: RemoteMetrics['totals'] & {
    readonly bodyRefusals: number
    readonly policyBudgetsSpent: number
    /** Agents that were turned away to make room for newer ones, and logins that failed. */
    readonly turnedAway: number
    readonly failures: number
    readonly refusedConnections: number
  }
  /** Gauges, which add up over planes. */
  readonly present: RemoteMetrics['present'] & {
    readonly sessions: number
    readonly tunnels: number
    readonly streams: number
    readonly unproven: number
    /** Connections of agents that wait here while their sessions are at other nodes. */
    readonly standbys: number
    /** Bytes of `--body-memory` in use. */
    readonly bodyMemory: number
  }
  /** Every plane serves every edge, so the largest number is that of the whole. */
  readonly servedEdges: number
  readonly comingEdges: number
  /** When the first certificate expires, in seconds since 1970. */
  readonly firstExpiry: number | undefined
}

/** The numbers of this node among others. */
export interface ClusterMetrics {
  /** Nodes whose leases run, including this one. */
  readonly nodes: number
  readonly isLeaseHeld: boolean
  readonly leaseAgeMs: number
  /** Changes of what is online here that are not written to the database yet. */
  readonly waitingRows: number
}

/** The numbers of several planes as one. */
export function sumOf(all: readonly PlaneMetrics[]): PlaneMetrics {
  return all.reduce(add, nothing)
}

/** Most rows kept of planes that are gone; the newest stay. */
const MAX_PAST_ROWS = 2000

/** What is kept of a plane that is gone: its totals, so that no counter goes back. */
export function pastOf(metrics: PlaneMetrics): PlaneMetrics {
  const past = (rows: readonly TrafficRow[]): readonly TrafficRow[] =>
    rows.slice(-MAX_PAST_ROWS).map((row) => ({ ...row, open: 0 }))
  const { latency, totals } = metrics
  return {
    ...nothing,
    edges: past(metrics.edges),
    endpoints: past(metrics.endpoints),
    latency,
    doors: metrics.doors.map((door) => ({ ...door, open: 0 })),
    totals,
  }
}

const nothing: PlaneMetrics = {
  edges: [],
  endpoints: [],
  latency: { bounds: [], steps: [], sumMs: 0 },
  doors: [],
  totals: {
    ...{ bodyRefusals: 0, policyBudgetsSpent: 0, turnedAway: 0, failures: 0, refusedConnections: 0, relayed: 0 },
    ...{ toNodes: 0, unreachedNodes: 0, fromNodes: 0, lookUps: 0, failedLookUps: 0 },
  },
  present: {
    ...{ sessions: 0, tunnels: 0, streams: 0, unproven: 0, standbys: 0, bodyMemory: 0 },
    ...{ linksToNodes: 0, linksFromNodes: 0, streamsToNodes: 0, streamsFromNodes: 0 },
  },
  servedEdges: 0,
  comingEdges: 0,
  firstExpiry: undefined,
}

function add(a: PlaneMetrics, b: PlaneMetrics): PlaneMetrics {
  return {
    edges: mergeRows(a.edges, b.edges),
    endpoints: mergeRows(a.endpoints, b.endpoints),
    latency: {
      bounds: b.latency.bounds.length > 0 ? b.latency.bounds : a.latency.bounds,
      steps: addLists(a.latency.steps, b.latency.steps),
      sumMs: a.latency.sumMs + b.latency.sumMs,
    },
    doors: merge(a.doors, b.doors, ({ door }) => door, addListeners),
    proxies: merge(
      a.proxies ?? [],
      b.proxies ?? [],
      ({ address }) => address,
      (one, other) => ({ ...one, requests: one.requests + other.requests }),
    ),
    totals: addFields(a.totals, b.totals),
    present: addFields(a.present, b.present),
    servedEdges: Math.max(a.servedEdges, b.servedEdges),
    comingEdges: Math.max(a.comingEdges, b.comingEdges),
    firstExpiry: least(a.firstExpiry, b.firstExpiry),
  }
}

/** Everything in `a` and `b`, where two things with the same key are added. */
function merge<T>(a: readonly T[], b: readonly T[], keyOf: (each: T) => string, add: (a: T, b: T) => T): readonly T[] {
  if (a.length === 0) return b
  const byKey = new Map(a.map((each) => [keyOf(each), each]))
  for (const each of b) {
    const known = byKey.get(keyOf(each))
    byKey.set(keyOf(each), known ? add(known, each) : each)
  }
  return [...byKey.values()]
}

function mergeRows(a: readonly TrafficRow[], b: readonly TrafficRow[]): readonly TrafficRow[] {
  return merge(a, b, ({ edge }) => edge, addRows)
}

function addRows(a: TrafficRow, b: TrafficRow): TrafficRow {
  return {
    edge: a.edge,
    address: b.address || a.address,
    connections: a.connections + b.connections,
    open: a.open + b.open,
    bytesIn: a.bytesIn + b.bytesIn,
    bytesOut: a.bytesOut + b.bytesOut,
    requests: addLists(a.requests, b.requests),
    requestMs: a.requestMs + b.requestMs,
    refused: a.refused + b.refused,
  }
}

function addListeners(a: ListenerMetrics, b: ListenerMetrics): ListenerMetrics {
  const counts = new Map(a.refusals)
  for (const [setting, count] of b.refusals) counts.set(setting, (counts.get(setting) ?? 0) + count)
  return { door: a.door, open: a.open + b.open, refusals: [...counts] }
}

function addLists(a: readonly number[], b: readonly number[]): readonly number[] {
  const longer = a.length > b.length ? a : b
  return longer.map((_, i) => (a[i] ?? 0) + (b[i] ?? 0))
}

function addFields<T extends Readonly<Record<string, number>>>(a: T, b: T): T {
  // A plane of another version may lack one.
  const names = Object.keys({ ...a, ...b })
  const sums = names.map((name) => [name, (a[name] ?? 0) + (b[name] ?? 0)])
  return Object.fromEntries(sums) as T // the same fields
}

function least(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? (a ?? b) : Math.min(a, b)
}
