import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Registry } from '@prometheus-io/client'
import { type PlaneMetrics, sumOf } from '../../model/plane-metrics.ts'
import { metricsPage } from './metrics.ts'
import { registerTraffic } from './traffic-metrics.ts'

const row = {
  edge: 'edghts_1',
  address: '',
  connections: 3,
  open: 1,
  bytesIn: 10,
  bytesOut: 20,
  requests: [1, 0, 4, 0, 0, 2],
  requestMs: 1500,
  refused: 0,
}

const planeMetrics: PlaneMetrics = {
  ...sumOf([]),
  edges: [row],
  endpoints: [{ ...row, edge: 'ep_1', address: 'app.example.com', connections: 7 }],
  latency: { bounds: [5, 1000], steps: [2, 1, 4], sumMs: 12_345 },
}

function registered(given: Partial<PlaneMetrics> = {}): Registry {
  const registry = new Registry()
  registerTraffic(registry, () => ({ ...planeMetrics, ...given }))
  return registry
}

test('each edge and endpoint has its own series, and requests are counted by the class of their status', async () => {
  const page = await metricsPage(registered())
  for (const line of [
    'postern_edge_connections_total{edge="edghts_1"} 3',
    'postern_edge_connections_open{edge="edghts_1"} 1',
    'postern_edge_request_seconds_total{edge="edghts_1"} 1.5',
    'postern_edge_requests_total{edge="edghts_1",status="none"} 1',
    'postern_edge_requests_total{edge="edghts_1",status="2xx"} 4',
    'postern_edge_requests_total{edge="edghts_1",status="5xx"} 2',
    'postern_endpoint_connections_total{endpoint="ep_1",address="app.example.com"} 7',
    'postern_endpoint_requests_total{endpoint="ep_1",address="app.example.com",status="2xx"} 4',
  ]) {
    assert.ok(page.includes(`\n${line}\n`), line)
  }
  assert.ok(!page.includes('status="3xx"'))
})

test('latencies are a histogram: each bucket includes those before it', async () => {
  const page = await metricsPage(registered())
  const [, histogram] = /# TYPE postern_visitor_request_seconds histogram\n((?:postern_visitor.*\n)+)/.exec(page) ?? []
  assert.equal(
    histogram,
    `postern_visitor_request_seconds_bucket{le="0.005"} 2
postern_visitor_request_seconds_bucket{le="1"} 3
postern_visitor_request_seconds_bucket{le="+Inf"} 7
postern_visitor_request_seconds_sum 12.345
postern_visitor_request_seconds_count 7
`,
  )
})

test('a page is what the library would write, and the same on a second read', async () => {
  const registry = registered()
  const page = await metricsPage(registry)
  assert.equal(page, await registry.metrics())
  assert.equal(page, await metricsPage(registry))
})

test('a large page does not block the event loop', async () => {
  const edges = Array.from({ length: 3000 }, (_, i) => ({ ...row, edge: `edghts_${i}` }))
  let turns = 0
  let isDone = false
  const count = (): void => {
    turns++
    if (!isDone) setImmediate(count)
  }
  setImmediate(count)
  await metricsPage(registered({ edges, endpoints: edges }))
  isDone = true
  assert.ok(turns > 3, `${turns} turns`)
})
