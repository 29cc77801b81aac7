/** Metrics about limits of the process: lost log lines, and connections refused for lack of descriptors. */
import { Counter, type Registry } from '@prometheus-io/client'
import { registerReadCounter } from './read-counter.ts'

interface ProcessMetrics {
  readonly lostLines: () => number
  readonly refusedConnections: () => number
  /** Processes that were replaced, by role; left out where there is one process. */
  readonly restarts?: () => Readonly<Record<string, number>>
}

/** Adds the metrics to `registry`. */
export function registerProcess(registry: Registry, { lostLines, refusedConnections, restarts }: ProcessMetrics): void {
  if (restarts) {
    new Counter({
      name: 'postern_process_restarts_total',
      help: 'Processes of this server that ended unexpectedly and were replaced.',
      labelNames: ['process'],
      registers: [registry],
      collect() {
        this.reset()
        for (const [process, count] of Object.entries(restarts())) this.inc({ process }, count)
      },
    })
  }
  registerReadCounter(registry, {
    name: 'postern_log_lines_lost_total',
    help: 'Log lines that could not be written and were dropped.',
    read: lostLines,
  })
  registerReadCounter(registry, {
    name: 'postern_descriptor_refusals_total',
    help: 'Connections closed because too few file descriptors were left.',
    read: refusedConnections,
  })
}
