/** Metrics about the caps of each door. */
import { Counter, Gauge, type Registry } from '@prometheus-io/client'
import type { ListenerMetrics, PlaneMetrics } from '../../model/plane-metrics.ts'
import { registerReadCounter } from './read-counter.ts'

/** Adds metrics for `doors`, and for the door of agents, to `registry`. */
export function registerCaps(
  registry: Registry,
  doors: () => readonly ListenerMetrics[],
  read: () => PlaneMetrics,
): void {
  new Gauge({
    name: 'postern_agents_unproven',
    help: 'Connections of agents that have not authenticated yet.',
    registers: [registry],
    collect() {
      this.set(read().present.unproven)
    },
  })
  registerReadCounter(registry, {
    name: 'postern_agents_turned_away_total',
    help: 'Unproven connections closed to make room for newer ones.',
    read: () => read().totals.turnedAway,
  })
  registerReadCounter(registry, {
    name: 'postern_agent_login_failures_total',
    help: 'Connections of agents that failed to authenticate.',
    read: () => read().totals.failures,
  })
  new Gauge({
    name: 'postern_connections_open',
    help: 'Connections that are open, by who uses the door.',
    labelNames: ['door'],
    registers: [registry],
    collect() {
      for (const { door, open } of doors()) this.set({ door }, open)
    },
  })
  new Counter({
    name: 'postern_cap_refusals_total',
    help: 'Connections, requests and handshakes refused at a cap, by the setting that sets it.',
    labelNames: ['door', 'setting'],
    registers: [registry],
    collect() {
      this.reset()
      for (const { door, refusals } of doors()) {
        for (const [setting, count] of refusals) this.inc({ door, setting }, count)
      }
    },
  })
}
