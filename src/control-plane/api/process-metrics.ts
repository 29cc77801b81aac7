/** Metrics about limits of the process: lost log lines, and connections refused for lack of descriptors. */
import type { Registry } from '@prometheus-io/client'
import { byLabel, registerReadMetrics } from './read-metrics.ts'

interface ProcessMetrics {
  readonly lostLines: () => number
  readonly refusedConnections: () => number
  /** Processes that were replaced, by role; left out where there is one process. */
  readonly restarts?: () => Readonly<Record<string, number>>
}

/** Adds the metrics to `registry`. */
export function registerProcess(registry: Registry, { lostLines, refusedConnections, restarts }: ProcessMetrics): void {
  if (restarts) {
    const help = 'Processes of this server that ended unexpectedly and were replaced.'
    const read = () => byLabel('process', restarts())
    registerReadMetrics(registry, [{ name: 'postern_process_restarts_total', help, labels: ['process'], read }])
  }
  registerReadMetrics(registry, [
    {
      name: 'postern_log_lines_lost_total',
      help: 'Log lines that could not be written and were dropped.',
      read: lostLines,
    },
    {
      name: 'postern_descriptor_refusals_total',
      help: 'Connections closed because too few file descriptors were left.',
      read: refusedConnections,
    },
  ])
}
