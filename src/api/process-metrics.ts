/** Metrics about limits of the process: lost log lines, and connections refused for lack of descriptors. */
import type { Registry } from '@prometheus-io/client'
import { registerReadCounter } from './read-counter.ts'

export interface ProcessNumbers {
  readonly lostLines: () => number
  readonly refusedConnections: () => number
}

/** Adds the metrics to `registry`. */
export function registerProcess(registry: Registry, { lostLines, refusedConnections }: ProcessNumbers): void {
  registerReadCounter(registry, {
    name: 'postern_log_lines_lost_total',
    help: 'Lines of the log that could not be written and were dropped.',
    read: lostLines,
  })
  registerReadCounter(registry, {
    name: 'postern_descriptor_refusals_total',
    help: 'Connections closed because too few file descriptors were left.',
    read: refusedConnections,
  })
}
