/** Metrics about the caps of each listener. */
import type { Registry } from '@prometheus-io/client'
import type { ListenerMetrics, PlaneMetrics } from '../../model/plane-metrics.ts'
import { registerReadMetrics } from './read-metrics.ts'

/** Adds metrics for `doors`, and for the listener for agents, to `registry`. */
export function registerCaps(
  registry: Registry,
  doors: () => readonly ListenerMetrics[],
  read: () => PlaneMetrics,
): void {
  registerReadMetrics(registry, [
    {
      name: 'postern_agents_unproven',
      help: 'Connections of agents that have not authenticated yet.',
      read: () => read().present.unproven,
    },
    {
      name: 'postern_agents_turned_away_total',
      help: 'Unproven connections closed to make room for newer ones.',
      read: () => read().totals.turnedAway,
    },
    {
      name: 'postern_agent_login_failures_total',
      help: 'Connections of agents that failed to authenticate.',
      read: () => read().totals.failures,
    },
    {
      name: 'postern_connections_open',
      help: 'Connections that are open, by who uses the door.',
      labels: ['door'],
      read: () => doors().map(({ door, open }) => [{ door }, open] as const),
    },
    {
      name: 'postern_cap_refusals_total',
      help: 'Connections, requests and handshakes refused at a cap, by the setting that sets it.',
      labels: ['door', 'setting'],
      read: () =>
        doors().flatMap(({ door, refusals }) =>
          [...refusals].map(([setting, count]) => [{ door, setting }, count] as const),
        ),
    },
  ])
}
