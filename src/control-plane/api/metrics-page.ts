/** The page for Prometheus, written metric by metric: with a thousand edges, all at once would block the event loop. */
import type { Registry } from '@prometheus-io/client'
import { othersTurn } from '../../lib/threads/others-turn.ts'

export async function metricsPage(registry: Registry): Promise<string> {
  const breath = othersTurn()
  const parts: string[] = []
  for (const { name } of registry.getMetricsAsArray()) {
    parts.push(await registry.getSingleMetricAsString(name))
    await breath()
  }
  return `${parts.join('\n\n')}\n`
}
