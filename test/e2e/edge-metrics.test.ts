/** The numbers of edges on the metrics page: those of deleted edges go with them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../support/until.ts'
import { dialled } from './edges/visitor.ts'
import { World } from './edges/world.ts'

test('the metrics of deleted edges go, also of those that have visitors while they are deleted', async (t) => {
  const world = await World.start()
  t.after(() => world.stop())
  const backend = await world.toBackend('http_response', { body: 'hello' })
  const { httpsPort: port, ca, metricsUrl } = world.platform
  const rows = async (): Promise<string> => (await fetch(metricsUrl)).text()

  const edges: Awaited<ReturnType<World['httpsEdge']>>[] = []
  for (let i = 0; i < 4; i++) edges.push(await world.httpsEdge({ routes: [{ backend }] }))
  // A connection that is only open, one that is used again and again, and edges without any.
  const door = { port, ca }
  const [idle, busy] = [
    await dialled({ ...door, name: edges[0]?.name ?? '' }),
    await dialled({ ...door, name: edges[1]?.name ?? '' }),
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
  // And stays gone, whatever ended late.
  await until('the last visitor is sent away', () => idle.closed && busy.closed)
  const after = await rows()
  for (const { id } of edges) assert.ok(!after.includes(id), after)
})
