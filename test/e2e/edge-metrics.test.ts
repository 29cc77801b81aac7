/** The metrics of edges and endpoints, which disappear with them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { forward } from '../../src/agent/library.ts'
import type { Json } from '../support/api-client.ts'
import { startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'
import { httpUpstream } from '../support/upstream.ts'
import { visit } from '../support/visitor.ts'
import { dialled } from './edges/visitor.ts'
import { World } from './edges/world.ts'

test('the metrics of deleted edges are removed, even if they had visitors at that moment', async (t) => {
  const world = await World.start()
  t.after(() => world.stop())
  const backend = await world.toBackend('http_response', { body: 'hello' })
  const { httpsPort: port, ca, metricsUrl } = world.platform
  const rows = async (): Promise<string> => (await fetch(metricsUrl)).text()

  const edges: Awaited<ReturnType<World['httpsEdge']>>[] = []
  for (let i = 0; i < 4; i++) edges.push(await world.httpsEdge({ routes: [{ backend }] }))
  // A connection that is only open, one that is used continuously, and edges without connections.
  const listener = { port, ca }
  const [idle, busy] = [
    await dialled({ ...listener, name: edges[0]?.name ?? '' }),
    await dialled({ ...listener, name: edges[1]?.name ?? '' }),
  ]
  const isBusy = setInterval(() => busy.write(`GET / HTTP/1.1\r\nHost: ${edges[1]?.name}\r\n\r\n`), 5)
  busy.resume().on('close', () => clearInterval(isBusy))
  idle.resume()
  for (const { name } of edges) assert.equal((await world.ask(name)).text, 'hello')
  const before = await rows()
  for (const { id } of edges) assert.match(before, new RegExp(`postern_edge_connections_total\\{edge="${id}"\\}`))

  for (const { path } of edges) await world.api.delete(path)
  await until('the last row of a deleted edge is gone', async () => {
    const text = await rows()
    return !edges.some(({ id }) => text.includes(id))
  })
  // And it stays away, whatever ends later.
  await until('the last visitor is disconnected', () => idle.closed && busy.closed)
  const after = await rows()
  for (const { id } of edges) assert.ok(!after.includes(id), after)
})

test('an endpoint of an agent has its own metrics while it is online, and its requests are in the histogram', async (t) => {
  const platform = await startPlatform()
  t.after(() => platform.stop())
  const { agents: server, ca, authtoken, metricsUrl, httpsPort } = platform
  const rows = async (): Promise<string> => (await fetch(metricsUrl)).text()
  const web = await httpUpstream(t, (_, response) => response.end('hello'))
  const tunnel = await forward({ addr: web.address, domain: 'counted.example.com', server, ca, authtoken })
  t.after(() => tunnel.close())
  for (let i = 0; i < 3; i++) await visit(`https://counted.example.com:${httpsPort}`, platform)
  const row = /^postern_endpoint_requests_total\{endpoint="ep_\w+",address="counted\.example\.com",status="2xx"\} 3$/m
  await until('three requests of the endpoint', async () => row.test(await rows()))
  const counted = await rows()
  assert.match(counted, /^postern_visitor_request_seconds_count 3$/m)
  assert.match(counted, /^postern_visitor_request_seconds_bucket\{le="\+Inf"\} 3$/m)
  assert.match(counted, /^postern_edge_requests_total\{edge="endpoints",status="2xx"\} 3$/m)

  await tunnel.close()
  const others = /^postern_endpoint_requests_total\{endpoint="others",address="",status="2xx"\} 3$/m
  await until('its row is gone and the totals remain', async () => {
    const text = await rows()
    return !text.includes('counted.example.com') && others.test(text)
  })
  assert.match(await rows(), /^postern_edge_requests_total\{edge="endpoints",status="2xx"\} 3$/m)
})

test('the history of traffic counts requests of visitors', async (t) => {
  const world = await World.start()
  t.after(() => world.stop())
  const edge = await world.httpsEdge({
    routes: [{ backend: await world.toBackend('http_response', { body: 'hello' }) }],
  })
  await until('each period has a point with a request', async () => {
    assert.equal((await world.ask(edge.name)).text, 'hello')
    for (const period of ['minutes', 'day']) {
      const { points } = await world.api.get(`/traffic/${period}`)
      if (!points.some(({ requests, p50_ms }: Json) => requests > 0 && p50_ms > 0)) return false
    }
    return true
  })
  const { interval, nodes, missing } = await world.api.get('/traffic/minutes')
  assert.deepEqual([interval, nodes.length, missing], [5, 1, []])
})
