/** Metrics about the API, and the page for Prometheus. */
import type { Server } from 'node:http'
import { Counter, collectDefaultMetrics, Histogram, Registry } from '@prometheus-io/client'
import { createServer } from '../../lib/http/node-http.ts'
import { othersTurn } from '../../lib/threads/others-turn.ts'

interface Served {
  readonly method: string
  readonly route: string
  readonly status: number
  readonly seconds: number
}

/** How often event loop utilization is sampled, in milliseconds; the default of 100 takes a hundredth of a core. */
const UTILIZATION_MS = 5000

/** The number of labels is bounded: routes and statuses are ours, and unknown methods are counted as `other`. */
export class ApiMetrics {
  readonly #registry: Registry
  readonly #duration: Histogram<'method' | 'route' | 'status'>
  readonly #refused: Counter<'status'>

  constructor(registry = new Registry()) {
    this.#registry = registry
    collectDefaultMetrics({ register: this.#registry, eventLoopUtilizationTimeout: UTILIZATION_MS })
    this.#duration = new Histogram({
      name: 'postern_api_request_seconds',
      help: 'Time from the head of an API request to the end of its answer.',
      labelNames: ['method', 'route', 'status'],
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5],
      registers: [this.#registry],
    })
    this.#refused = new Counter({
      name: 'postern_api_refusals_total',
      help: 'API requests answered with a status of 400 or more.',
      labelNames: ['status'],
      registers: [this.#registry],
    })
  }

  served({ method, route, status, seconds }: Served): void {
    const known = methods.has(method) ? method : 'other'
    this.#duration.observe({ method: known, route, status: String(status) }, seconds)
    if (status >= 400) this.#refused.inc({ status: String(status) })
  }

  /** A server for `/metrics` only, which reads the numbers first, on a separate listener so that it can stay private. */
  server(read: () => Promise<void>): Server {
    return createServer((request, response) => {
      if (request.url !== '/metrics') {
        response.writeHead(404, { 'content-type': 'text/plain' }).end('metrics are at /metrics\n')
        return
      }
      const page = read().then(() => metricsPage(this.#registry))
      page.then(
        (text) => response.writeHead(200, { 'content-type': this.#registry.contentType }).end(text),
        () => response.writeHead(500).end(),
      )
    })
  }
}

const methods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

/** The page for Prometheus, written metric by metric: with a thousand edges, all at once would block the event loop. */
export async function metricsPage(registry: Registry): Promise<string> {
  const breath = othersTurn()
  const parts: string[] = []
  for (const { name } of registry.getMetricsAsArray()) {
    parts.push(await registry.getSingleMetricAsString(name))
    await breath()
  }
  return `${parts.join('\n\n')}\n`
}
