/** Collects the numbers of a data plane, for the metrics. */
import type { BodyMemory } from '../../data-plane/edge/body-memory.ts'
import type { EdgeTable } from '../../data-plane/edge/edge-table.ts'
import { latencyBounds } from '../../data-plane/edge/latency-count.ts'
import type { Certificates } from '../../data-plane/edge/served-certificates.ts'
import type { TrafficCount } from '../../data-plane/edge/traffic-count.ts'
import type { Online } from '../../data-plane/tunnel/online-tunnels.ts'
import type { ConnectionCaps } from '../../lib/net/connection-caps.ts'
import type { PlaneMetrics, RemoteMetrics } from '../../model/plane-metrics.ts'

interface CountingParts {
  readonly counts: TrafficCount
  readonly doors: readonly ConnectionCaps[]
  readonly online: Pick<Online, 'load' | 'standbys'>
  readonly bodyMemory: BodyMemory
  readonly edges: Pick<EdgeTable, 'size' | 'coming'>
  readonly certificates: Pick<Certificates, 'firstExpiry'>
  /** Unauthenticated connections at the doors of agents and of SSH. */
  readonly strangers: readonly { readonly unproven: number; readonly turnedAway: number; readonly failures: number }[]
  readonly elsewhere: { readonly numbers: RemoteMetrics }
  readonly policyBudgetsSpent: number
  readonly refusedConnections: number
}

export function planeMetrics(parts: CountingParts): PlaneMetrics {
  const { counts, doors, online, bodyMemory, edges, certificates, strangers } = parts
  const { sessions, tunnels, connections } = online.load
  const { latency } = counts
  const { firstExpiry } = certificates
  const elsewhere = parts.elsewhere.numbers
  return {
    edges: [...counts],
    endpoints: [...counts.endpoints()],
    latency: { bounds: latencyBounds, steps: [...latency.steps], sumMs: latency.sumMs },
    doors: doors.map(({ door, open, refusals }) => ({ door, open, refusals })),
    totals: {
      bodyRefusals: bodyMemory.refusals,
      policyBudgetsSpent: parts.policyBudgetsSpent,
      turnedAway: sum(strangers.map(({ turnedAway }) => turnedAway)),
      failures: sum(strangers.map(({ failures }) => failures)),
      refusedConnections: parts.refusedConnections,
      ...elsewhere.totals,
    },
    present: {
      sessions,
      tunnels,
      streams: connections,
      standbys: online.standbys.size,
      unproven: sum(strangers.map(({ unproven }) => unproven)),
      bodyMemory: bodyMemory.used,
      ...elsewhere.present,
    },
    servedEdges: edges.size,
    comingEdges: edges.coming,
    // Metrics count seconds.
    firstExpiry: firstExpiry === undefined ? undefined : Math.floor(firstExpiry / 1000),
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((a, b) => a + b, 0)
}
