/** Metrics whose values another part of the program counts; they are read at each scrape. */
import { Counter, Gauge, type Registry } from '@prometheus-io/client'

type Labelled = readonly [labels: Readonly<Record<string, string>>, value: number]

interface ReadMetric {
  /** One that ends in `_total` becomes a counter, any other a gauge. */
  readonly name: string
  readonly help: string
  readonly labels?: readonly string[]
  /** One value, or one for each combination of labels. */
  readonly read: () => number | Iterable<Labelled>
}

export function registerReadMetrics(registry: Registry, metrics: readonly ReadMetric[]): void {
  for (const { name, help, labels = [], read } of metrics) {
    const Kind = name.endsWith('_total') ? Counter : Gauge
    new Kind<string>({
      name,
      help,
      labelNames: [...labels],
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
