/** What the caps of each door count, as metrics. */
import { Counter, Gauge, type Registry } from '@prometheus-io/client'
import type { ConnectionCaps } from '../lib/connection-caps.ts'

/** Adds the numbers of `doors` to `registry`. */
export function registerCaps(registry: Registry, doors: readonly ConnectionCaps[]): void {
  new Gauge({
    name: 'postern_connections_open',
    help: 'Connections that are open, by who uses the door.',
    labelNames: ['door'],
    registers: [registry],
    collect() {
      for (const { door, open } of doors) this.set({ door }, open)
    },
  })
  new Counter({
    name: 'postern_cap_refusals_total',
    help: 'Connections, requests and handshakes refused at a cap, by the setting that sets it.',
    labelNames: ['door', 'setting'],
    registers: [registry],
    collect() {
      this.reset()
      for (const { door, refusals } of doors) {
        for (const [setting, count] of refusals) this.inc({ door, setting }, count)
      }
    },
  })
}
