/** Collects the numbers of a data plane, for the metrics. */
import { latencyBounds } from '../../data-plane/edge/latency-count.ts'
import type { PlaneMetrics } from '../../model/plane-metrics.ts'
import type { AgentEntrance } from './drain-plane.ts'
import type { OpeningPlane, PlaneParts } from './opening-plane.ts'

export function planeMetrics(
  { descriptors }: OpeningPlane,
  parts: PlaneParts,
  agentListeners: readonly AgentEntrance[],
): PlaneMetrics {
  const { counts, bodyMemory, proxies } = parts.records
  const { edges, budgets } = parts.table
  const { online } = parts.tunnels
  const strangers = agentListeners.map(({ metrics }) => metrics)
  const { sessions, tunnels, connections } = online.load
  const { latency } = counts
  const { firstExpiry } = parts.mirrors.certificates
  const remote = parts.remote.metrics
  return {
    edges: [...counts],
    endpoints: [...counts.endpoints()],
    latency: { bounds: latencyBounds, steps: [...latency.steps], sumMs: latency.sumMs },
    proxies: proxies.found,
    doors: Object.values(parts.limits.caps).map(({ door, open, refusals }) => ({ door, open, refusals })),
    totals: {
      bodyRefusals: bodyMemory.refusals,
      policyBudgetsSpent: budgets.spent,
      turnedAway: sum(strangers.map(({ turnedAway }) => turnedAway)),
      failures: sum(strangers.map(({ failures }) => failures)),
      refusedConnections: descriptors.refused,
      ...remote.totals,
    },
    present: {
      sessions,
      tunnels,
      streams: connections,
      standbys: online.standbys.size,
      unproven: sum(strangers.map(({ unproven }) => unproven)),
      bodyMemory: bodyMemory.used,
      ...remote.present,
    },
    servedEdges: edges.size,
    comingEdges: edges.coming,
    // Metrics count seconds.
    firstExpiry: firstExpiry === undefined ? undefined : Math.floor(firstExpiry / 1000),
  }
}

function sum(metrics: readonly number[]): number {
  return metrics.reduce((a, b) => a + b, 0)
}
