/** Metrics whose values another part of the program counts; they are read at each scrape. */
import { Counter, Gauge, type Registry } from '@prometheus-io/client'

type Labelled = readonly [labels: Readonly<Record<string, string>>, value: number]

/**
 * One whose name ends in `_total` becomes a counter, any other a gauge. `read` gives one value, or one for each combination of
 * `labels`.
 */
type ReadMetric = readonly [name: string, help: string, read: () => number | Iterable<Labelled>, ...labels: string[]]

export function registerReadMetrics(registry: Registry, metrics: readonly ReadMetric[]): void {
  for (const [name, help, read, ...labelNames] of metrics) {
    const Kind = name.endsWith('_total') ? Counter : Gauge
    new Kind<string>({
      name,
      help,
      labelNames,
      registers: [registry],
      collect() {
        this.reset()
        const found = read()
        if (typeof found === 'number') this.inc(found)
        else for (const [labels, value] of found) this.inc(labels, value)
      },
    })
  }
}

/** Values that differ in one label only. */
export function* byLabel(label: string, values: Readonly<Record<string, number>>): Generator<Labelled> {
  for (const [name, value] of Object.entries(values)) yield [{ [label]: name }, value]
}
