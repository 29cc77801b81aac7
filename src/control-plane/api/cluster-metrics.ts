/** Metrics about this node in its cluster: its lease, its links to other nodes, and its look-ups in the database. */
import type { Registry } from '@prometheus-io/client'
import type { ClusterMetrics, PlaneMetrics } from '../../model/plane-metrics.ts'
import { byLabel, registerReadMetrics } from './read-metrics.ts'

interface ClusterReads {
  readonly cluster: () => ClusterMetrics
  readonly planes: () => PlaneMetrics
}

/** Adds the metrics to `registry`. */
export function registerCluster(registry: Registry, { cluster, planes }: ClusterReads): void {
  registerReadMetrics(registry, [
    {
      name: 'postern_cluster_nodes',
      help: 'Nodes with a valid lease, including this one.',
      read: () => cluster().nodes,
    },
    {
      name: 'postern_cluster_lease_held',
      help: 'Whether the lease of this node is valid: 1 or 0.',
      read: () => Number(cluster().isLeaseHeld),
    },
    {
      name: 'postern_cluster_lease_age_seconds',
      help: 'Time since the lease of this node was renewed.',
      read: () => cluster().leaseAgeMs / 1000,
    },
    {
      name: 'postern_cluster_rows_waiting',
      help: 'Sessions, tunnels and addresses whose change is not yet in the database.',
      read: () => cluster().waitingRows,
    },
    {
      name: 'postern_cluster_standbys',
      help: 'Connections of agents that wait here while their sessions are at other nodes.',
      read: () => planes().present.standbys,
    },
    {
      name: 'postern_cluster_links',
      help: 'Connections between nodes, by who opened them: `to` other nodes, or `from` them.',
      labels: ['way'],
      read() {
        const { linksToNodes: to, linksFromNodes: from } = planes().present
        return byLabel('way', { to, from })
      },
    },
    {
      name: 'postern_cluster_streams',
      help: 'Connections of visitors that are carried `to` agents at other nodes, or `from` there to agents here.',
      labels: ['way'],
      read() {
        const { streamsToNodes: to, streamsFromNodes: from } = planes().present
        return byLabel('way', { to, from })
      },
    },
    {
      name: 'postern_cluster_streams_total',
      help: 'Connections of visitors that were to be carried `to` agents at other nodes, or `from` there to agents here.',
      labels: ['way'],
      read() {
        const { toNodes: to, fromNodes: from } = planes().totals
        return byLabel('way', { to, from })
      },
    },
    {
      name: 'postern_cluster_unreached_total',
      help: 'Connections of visitors that failed because the node of the agent could not be reached.',
      read: () => planes().totals.unreachedNodes,
    },
    {
      name: 'postern_cluster_lookups_total',
      help: 'Look-ups of what other nodes have online.',
      read: () => planes().totals.lookUps,
    },
    {
      name: 'postern_cluster_lookup_failures_total',
      help: 'Look-ups that were not answered because the database was down or slow.',
      read: () => planes().totals.failedLookUps,
    },
  ])
}
