/** The data plane's numbers as metrics: read at each scrape, not as traffic comes. */
import type { Metric, Registry } from '@prometheus-io/client'
import type { PlaneMetrics, TrafficRow } from '../../model/plane-metrics.ts'
import { registerReadMetrics } from './read-metrics.ts'

/** Adds the metrics to `registry`. */
export function registerTraffic(registry: Registry, read: () => PlaneMetrics): void {
  const plain: readonly (readonly [
    name: string,
    help: string,
    value: (metrics: PlaneMetrics) => number | undefined,
  ])[] = [
    ['postern_sessions', 'Sessions of agents that are online.', ({ present }) => present.sessions],
    ['postern_tunnels', 'Tunnels that are online.', ({ present }) => present.tunnels],
    ['postern_streams', 'Connections that are carried to agents.', ({ present }) => present.streams],
    ['postern_edges', 'Edges and endpoints that are served.', ({ servedEdges }) => servedEdges],
    ['postern_edges_coming', 'Edges with a change that is still being compiled.', ({ comingEdges }) => comingEdges],
    [
      'postern_body_memory_bytes',
      'Memory held by request bodies that modules read.',
      ({ present }) => present.bodyMemory,
    ],
    [
      'postern_body_memory_refusals_total',
      'Request bodies refused because the body memory was full.',
      ({ totals }) => totals.bodyRefusals,
    ],
    [
      'postern_policy_budget_spent_total',
      'Requests and connections whose policy expressions cost more than they may.',
      ({ totals }) => totals.policyBudgetsSpent,
    ],
    [
      'postern_relayed_connections_total',
      'Connections to tunnels that went through another worker, the one with the session of the agent.',
      ({ totals }) => totals.relayed,
    ],
    [
      'postern_certificate_first_expiry_seconds',
      'When the next certificate expires.',
      ({ firstExpiry }) => firstExpiry,
    ],
  ]
  registerReadMetrics(
    registry,
    plain.map(([name, help, value]) => [name, help, () => value(read()) ?? 0]),
  )
  registerReadMetrics(registry, [
    [
      'postern_untrusted_proxy_requests',
      'Requests with headers of a proxy, by an address that most requests come from and that is not in `--trusted-proxies`.',
      () => (read().proxies ?? []).map(({ address, requests }) => [{ address }, requests] as const),
      'address',
    ],
  ])
  registerRows(registry, 'edge', () => read().edges)
  registerRows(registry, 'endpoint', () => read().endpoints)
  registerLatency(registry, () => read().latency)
}

/** The numbers of edges or of endpoints, as `postern_<what>_…`. */
function registerRows(registry: Registry, what: 'edge' | 'endpoint', rows: () => readonly TrafficRow[]): void {
  const labels = what === 'edge' ? ['edge'] : ['endpoint', 'address']
  const labelsOf = ({ edge, address }: TrafficRow): Readonly<Record<string, string>> =>
    what === 'edge' ? { edge } : { endpoint: edge, address }
  const each: readonly (readonly [name: string, help: string, read: (row: TrafficRow) => number])[] = [
    ['connections_total', 'Connections of visitors.', (row) => row.connections],
    ['connections_open', 'Connections of visitors that are open.', (row) => row.open],
    ['bytes_in_total', 'Bytes from visitors.', (row) => row.bytesIn],
    ['bytes_out_total', 'Bytes to visitors.', (row) => row.bytesOut],
    ['request_seconds_total', 'Total time that requests of visitors took.', (row) => row.requestMs / 1000],
    ['refused_total', 'Connections and requests that were not let through.', (row) => row.refused],
  ]
  const read = (value: (row: TrafficRow) => number) => rows().map((row) => [labelsOf(row), value(row)] as const)
  registerReadMetrics(registry, [
    ...each.map(([name, help, value]) => [`postern_${what}_${name}`, help, () => read(value), ...labels] as const),
    [
      `postern_${what}_requests_total`,
      'Requests of visitors by the class of their status; `none` went unanswered.',
      function* () {
        for (const row of rows()) {
          for (const [digit, count] of row.requests.entries()) {
            const status = digit === 0 ? 'none' : `${digit}xx`
            if (count > 0) yield [{ ...labelsOf(row), status }, count]
          }
        }
      },
      ...labels,
      'status',
    ],
  ])
}

const LATENCY = 'postern_visitor_request_seconds'

/** A histogram whose values are counted elsewhere: the library's own would need a call for every request. */
function registerLatency(registry: Registry, read: () => PlaneMetrics['latency']): void {
  const metric = {
    name: LATENCY,
    help: 'Time from the head of a request of a visitor to the end of its answer.',
    type: 'histogram',
    aggregator: 'sum',
    async get() {
      const { bounds, steps, sumMs } = read()
      let count = 0
      const buckets = [...steps].map((some, i) => {
        count += some
        const bound = bounds[i]
        const le = bound === undefined ? '+Inf' : String(bound / 1000)
        return { metricName: `${LATENCY}_bucket`, labels: { le }, value: count }
      })
      const values = [
        ...buckets,
        { metricName: `${LATENCY}_sum`, labels: {}, value: sumMs / 1000 },
        { metricName: `${LATENCY}_count`, labels: {}, value: count },
      ]
      return { name: LATENCY, help: metric.help, type: metric.type, values, aggregator: metric.aggregator }
    },
  }
  // It has all that a registry uses of a metric, but not the classes that the type names.
  registry.registerMetric(metric as unknown as Metric<string>)
}
