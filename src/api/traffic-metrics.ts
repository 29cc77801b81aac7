/** The data plane's numbers as metrics: read when somebody asks for them, not when traffic comes. */
import { Counter, Gauge, type Registry } from '@prometheus-io/client'

export interface TrafficNumbers {
  /** By edge; a bounded number of them. */
  readonly edges: () => Iterable<{
    readonly edge: string
    readonly connections: number
    readonly open: number
    readonly bytesIn: number
    readonly bytesOut: number
    readonly requests: readonly number[]
    readonly refused: number
  }>
  readonly sessions: () => number
  readonly tunnels: () => number
  readonly streams: () => number
  readonly servedEdges: () => number
  /** Edges that are served as they were, while a change of theirs is compiled. */
  readonly comingEdges: () => number
  /** Bytes of `--body-memory` in use, and how often it had none. */
  readonly bodyMemory: () => number
  readonly bodyRefusals: () => number
  /** Requests and connections whose policy was cut short. */
  readonly policyBudgetsSpent: () => number
  /** When the certificate that expires first does so, in seconds since 1970; undefined without any. */
  readonly firstExpiry: () => number | undefined
}

/** Adds the numbers to `registry`. */
export function registerTraffic(registry: Registry, numbers: TrafficNumbers): void {
  const plain: readonly (readonly [name: string, help: string, read: () => number | undefined])[] = [
    ['postern_sessions', 'Sessions of agents that are online.', numbers.sessions],
    ['postern_tunnels', 'Tunnels that are online.', numbers.tunnels],
    ['postern_streams', 'Connections that are carried to agents.', numbers.streams],
    ['postern_edges', 'Edges and endpoints that are served.', numbers.servedEdges],
    ['postern_edges_coming', 'Edges of which a change is compiled and not in force yet.', numbers.comingEdges],
    ['postern_body_memory_bytes', 'Memory that bodies which modules read hold now.', numbers.bodyMemory],
    ['postern_body_memory_refusals_total', 'Bodies that found no memory to be read into.', numbers.bodyRefusals],
    [
      'postern_policy_budget_spent_total',
      'Requests and connections whose policy expressions cost more than they may.',
      numbers.policyBudgetsSpent,
    ],
    ['postern_certificate_first_expiry_seconds', 'When the next certificate expires.', numbers.firstExpiry],
  ]
  for (const [name, help, read] of plain) {
    // What only grows is a counter; it is counted elsewhere and told whole.
    const Kind = name.endsWith('_total') ? Counter : Gauge
    new Kind({
      name,
      help,
      registers: [registry],
      collect() {
        this.reset()
        this.inc(read() ?? 0)
      },
    })
  }

  type Row = ReturnType<TrafficNumbers['edges']> extends Iterable<infer R> ? R : never
  const byEdge: readonly (readonly [name: string, help: string, read: (row: Row) => number])[] = [
    ['postern_edge_connections_total', 'Connections of visitors.', (row) => row.connections],
    ['postern_edge_connections_open', 'Connections of visitors that are open.', (row) => row.open],
    ['postern_edge_bytes_in_total', 'Bytes from visitors.', (row) => row.bytesIn],
    ['postern_edge_bytes_out_total', 'Bytes to visitors.', (row) => row.bytesOut],
    ['postern_edge_refused_total', 'Connections and requests that were not let through.', (row) => row.refused],
  ]
  for (const [name, help, read] of byEdge) {
    const Kind = name.endsWith('_total') ? Counter : Gauge
    new Kind({
      name,
      help,
      labelNames: ['edge'],
      registers: [registry],
      collect() {
        this.reset()
        for (const row of numbers.edges()) this.inc({ edge: row.edge }, read(row))
      },
    })
  }
  new Counter({
    name: 'postern_edge_requests_total',
    help: 'Requests of visitors by the class of their status; `none` went unanswered.',
    labelNames: ['edge', 'status'],
    registers: [registry],
    collect() {
      this.reset()
      for (const { edge, requests } of numbers.edges()) {
        for (const [digit, count] of requests.entries()) {
          if (count > 0) this.inc({ edge, status: digit === 0 ? 'none' : `${digit}xx` }, count)
        }
      }
    },
  })
}
