/** Metrics about this node in its cluster: its lease, its links to other nodes, and its look-ups in the database. */
import { Counter, Gauge, type Registry } from '@prometheus-io/client'
import type { ClusterMetrics, PlaneMetrics } from '../../model/plane-metrics.ts'
import { registerReadCounter } from './read-counter.ts'

interface ClusterReads {
  readonly cluster: () => ClusterMetrics
  readonly planes: () => PlaneMetrics
}

/** Adds the metrics to `registry`. */
export function registerCluster(registry: Registry, { cluster, planes }: ClusterReads): void {
  const gauges: readonly (readonly [name: string, help: string, read: (numbers: ClusterMetrics) => number])[] = [
    ['nodes', 'Nodes with a valid lease, including this one.', ({ nodes }) => nodes],
    ['lease_held', 'Whether the lease of this node is valid: 1 or 0.', ({ isLeaseHeld }) => (isLeaseHeld ? 1 : 0)],
    ['lease_age_seconds', 'Time since the lease of this node was renewed.', ({ leaseAgeMs }) => leaseAgeMs / 1000],
    [
      'rows_waiting',
      'Sessions, tunnels and addresses whose change is not yet in the database.',
      ({ waitingRows }) => waitingRows,
    ],
  ]
  for (const [name, help, read] of gauges) {
    new Gauge({
      name: `postern_cluster_${name}`,
      help,
      registers: [registry],
      collect() {
        this.set(read(cluster()))
      },
    })
  }
  new Gauge({
    name: 'postern_cluster_standbys',
    help: 'Connections of agents that wait here while their sessions are at other nodes.',
    registers: [registry],
    collect() {
      this.set(planes().present.standbys)
    },
  })
  const ways: readonly (readonly [name: string, help: string, read: (numbers: PlaneMetrics) => Ways])[] = [
    [
      'links',
      'Connections between nodes, by who opened them: `to` other nodes, or `from` them.',
      ({ present }) => ({ to: present.linksToNodes, from: present.linksFromNodes }),
    ],
    [
      'streams',
      'Connections of visitors that are carried `to` agents at other nodes, or `from` there to agents here.',
      ({ present }) => ({ to: present.streamsToNodes, from: present.streamsFromNodes }),
    ],
    [
      'streams_total',
      'Connections of visitors that were to be carried `to` agents at other nodes, or `from` there to agents here.',
      ({ totals }) => ({ to: totals.toNodes, from: totals.fromNodes }),
    ],
  ]
  for (const [name, help, read] of ways) {
    const Kind = name.endsWith('_total') ? Counter : Gauge
    new Kind({
      name: `postern_cluster_${name}`,
      help,
      labelNames: ['way'],
      registers: [registry],
      collect() {
        this.reset()
        for (const [way, count] of Object.entries(read(planes()))) this.inc({ way }, count)
      },
    })
  }
  registerReadCounter(registry, {
    name: 'postern_cluster_unreached_total',
    help: 'Connections of visitors that failed because the node of the agent could not be reached.',
    read: () => planes().totals.unreachedNodes,
  })
  registerReadCounter(registry, {
    name: 'postern_cluster_lookups_total',
    help: 'Look-ups of what other nodes have online.',
    read: () => planes().totals.lookUps,
  })
  registerReadCounter(registry, {
    name: 'postern_cluster_lookup_failures_total',
    help: 'Look-ups that were not answered because the database was down or slow.',
    read: () => planes().totals.failedLookUps,
  })
}

interface Ways {
  readonly to: number
  readonly from: number
}
