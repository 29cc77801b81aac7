/** A counter metric whose value another part of the program counts; it is read at each scrape. */
import { Counter, type Registry } from '@prometheus-io/client'

interface ReadCounter {
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
