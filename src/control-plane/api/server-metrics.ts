/** Metrics about the server beside its traffic: caps of listeners, limits of the process, certificates, and the cluster. */
import type { Registry } from '@prometheus-io/client'
import type { ClusterMetrics, ListenerMetrics, PlaneMetrics } from '../../model/plane-metrics.ts'
import { byLabel, registerReadMetrics } from './read-metrics.ts'

/** Adds metrics for `doors`, and for the listener for agents, to `registry`. */
export function registerCaps(
  registry: Registry,
  doors: () => readonly ListenerMetrics[],
  read: () => PlaneMetrics,
): void {
  registerReadMetrics(registry, [
    [
      'postern_agents_unproven',
      'Connections of agents that have not authenticated yet.',
      () => read().present.unproven,
    ],
    [
      'postern_agents_turned_away_total',
      'Unproven connections closed to make room for newer ones.',
      () => read().totals.turnedAway,
    ],
    [
      'postern_agent_login_failures_total',
      'Connections of agents that failed to authenticate.',
      () => read().totals.failures,
    ],
    [
      'postern_connections_open',
      'Connections that are open, by who uses the door.',
      () => doors().map(({ door, open }) => [{ door }, open]),
      'door',
    ],
    [
      'postern_cap_refusals_total',
      'Connections, requests and handshakes refused at a cap, by the setting that sets it.',
      () => doors().flatMap(({ door, refusals }) => refusals.map(([setting, count]) => [{ door, setting }, count])),
      'door',
      'setting',
    ],
  ])
}

interface ProcessMetrics {
  readonly lostLines: () => number
  readonly refusedConnections: () => number
  /** Processes that were replaced, by role; left out where there is one process. */
  readonly restarts?: () => Readonly<Record<string, number>>
}

/** Adds metrics about limits of the process: lost log lines, and connections refused for lack of descriptors. */
export function registerProcess(registry: Registry, { lostLines, refusedConnections, restarts }: ProcessMetrics): void {
  if (restarts) {
    const help = 'Processes of this server that ended unexpectedly and were replaced.'
    const read = () => byLabel('process', restarts())
    registerReadMetrics(registry, [['postern_process_restarts_total', help, read, 'process']])
  }
  registerReadMetrics(registry, [
    ['postern_log_lines_lost_total', 'Log lines that could not be written and were dropped.', lostLines],
    [
      'postern_descriptor_refusals_total',
      'Connections closed because too few file descriptors were left.',
      refusedConnections,
    ],
  ])
}

/** Adds the metrics of certificates in files. */
export function registerCertificateFiles(
  registry: Registry,
  read: () => { readonly served: number; readonly bad: number },
): void {
  const help = 'Certificates in `--certificate-dir`: `served`, and `bad` ones, which the log names.'
  const states = () => {
    const { served, bad } = read()
    return byLabel('state', { served, bad })
  }
  registerReadMetrics(registry, [['postern_certificate_files', help, states, 'state']])
}

/** The counts: names are counted for all nodes together, and results for this node. */
type CertificateCount = 'ordering' | 'first' | 'renewal' | 'failing' | 'ordersWithinHour' | 'issued' | 'failed'

/** Adds the metrics of certificates that the server gets by itself. */
export function registerCertificates(registry: Registry, read: () => Readonly<Record<CertificateCount, number>>): void {
  registerReadMetrics(registry, [
    [
      'postern_certificate_names',
      'Names whose certificates the server gets by itself, by what is next: an order `ordering`, the `first` certificate, or a `renewal`.',
      () => {
        const { ordering, first, renewal } = read()
        return byLabel('next', { ordering, first, renewal })
      },
      'next',
    ],
    [
      'postern_certificate_names_failing',
      'Names whose last try to get a certificate failed; each is retried. The log and the API say why.',
      () => read().failing,
    ],
    [
      'postern_acme_orders_last_hour',
      'Orders that all nodes started within the last hour; `--acme-orders-per-hour` limits them.',
      () => read().ordersWithinHour,
    ],
    [
      'postern_acme_issued_total',
      'Certificates that this node got from the certificate authority.',
      () => read().issued,
    ],
    [
      'postern_acme_failures_total',
      'Failed tries of this node to get a certificate; each is retried.',
      () => read().failed,
    ],
  ])
}

/** Adds the metrics of this node in its cluster: its lease, its links to other nodes, and its look-ups in the database. */
export function registerCluster(registry: Registry, cluster: () => ClusterMetrics, planes: () => PlaneMetrics): void {
  registerReadMetrics(registry, [
    ['postern_cluster_nodes', 'Nodes with a valid lease, including this one.', () => cluster().nodes],
    [
      'postern_cluster_lease_held',
      'Whether the lease of this node is valid: 1 or 0.',
      () => Number(cluster().isLeaseHeld),
    ],
    [
      'postern_cluster_lease_age_seconds',
      'Time since the lease of this node was renewed.',
      () => cluster().leaseAgeMs / 1000,
    ],
    [
      'postern_cluster_rows_waiting',
      'Sessions, tunnels and addresses whose change is not yet in the database.',
      () => cluster().waitingRows,
    ],
    [
      'postern_cluster_standbys',
      'Connections of agents that wait here while their sessions are at other nodes.',
      () => planes().present.standbys,
    ],
    [
      'postern_cluster_links',
      'Connections between nodes, by who opened them: `to` other nodes, or `from` them.',
      () => byWay(planes().present.linksToNodes, planes().present.linksFromNodes),
      'way',
    ],
    [
      'postern_cluster_streams',
      'Connections of visitors that are carried `to` agents at other nodes, or `from` there to agents here.',
      () => byWay(planes().present.streamsToNodes, planes().present.streamsFromNodes),
      'way',
    ],
    [
      'postern_cluster_streams_total',
      'Connections of visitors that were to be carried `to` agents at other nodes, or `from` there to agents here.',
      () => byWay(planes().totals.toNodes, planes().totals.fromNodes),
      'way',
    ],
    [
      'postern_cluster_unreached_total',
      'Connections of visitors that failed because the node of the agent could not be reached.',
      () => planes().totals.unreachedNodes,
    ],
    ['postern_cluster_lookups_total', 'Look-ups of what other nodes have online.', () => planes().totals.lookUps],
    [
      'postern_cluster_lookup_failures_total',
      'Look-ups that were not answered because the database was down or slow.',
      () => planes().totals.failedLookUps,
    ],
  ])
}

function byWay(to: number, from: number) {
  return byLabel('way', { to, from })
}
