/** What the process itself ran short of, as metrics. */
import { Counter, type Registry } from '@prometheus-io/client'

export interface ProcessNumbers {
  readonly lostLines: () => number
  readonly refusedConnections: () => number
}

/** Adds the numbers to `registry`. */
export function registerProcess(registry: Registry, numbers: ProcessNumbers): void {
  const counted: readonly (readonly [name: string, help: string, read: () => number])[] = [
    ['postern_log_lines_lost_total', 'Lines of the log that could not be written and were dropped.', numbers.lostLines],
    [
      'postern_descriptor_refusals_total',
      'Connections closed because too few file descriptors were left.',
      numbers.refusedConnections,
    ],
  ]
  for (const [name, help, read] of counted) {
    new Counter({
      name,
      help,
      registers: [registry],
      collect() {
        this.reset()
        this.inc(read())
      },
    })
  }
}
