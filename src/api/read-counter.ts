/** A metric that somebody else counts, since the start of the process: it is read whenever the metrics are asked for. */
import { Counter, type Registry } from '@prometheus-io/client'

export interface ReadCounter {
  readonly name: string
  readonly help: string
  readonly read: () => number
}

export function registerReadCounter(registry: Registry, { name, help, read }: ReadCounter): void {
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
