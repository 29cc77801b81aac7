/** Captures: a caller that starts as many as it can leaves the others theirs. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { ApiClient } from '../../support/api-client.ts'
import { until } from '../../support/until.ts'
import { type Recorder, recorder } from '../edges/upstreams.ts'
import { type HttpsEdge, World } from '../edges/world.ts'

let world: World
let service: Recorder
before(async () => {
  world = await World.start()
  service = await recorder(world)
})
after(() => world.stop())

test('an owner has at most ten captures, even when all begin at once, and others have theirs', async () => {
  const [busy, calm] = [await world.platform.member(), await world.platform.member()]
  const edges = await Promise.all(Array.from({ length: 12 }, () => world.httpsTo(service)))
  const start = (edge: HttpsEdge | undefined, api: ApiClient) =>
    api.send('POST', '/captures', { body: { edge_id: edge?.id } })
  const answers = await Promise.all(edges.slice(0, 11).map((edge) => start(edge, busy.api)))
  const made = answers.filter(({ status }) => status === 201)
  const [refused, another] = answers.filter(({ status }) => status !== 201)
  assert.deepEqual([made.length, refused?.status, another], [10, 409, undefined])
  assert.equal(refused?.body.error_code, 'ERR_CAPTURE_RUNS')
  assert.match(refused?.body.msg, new RegExp(`^10 captures of \`${busy.id}\` run already`))
  assert.equal((await start(edges[11], calm.api)).status, 201)
  await busy.api.delete(`/captures/${made[0]?.body.id}`)
  assert.equal((await start(edges[answers.findIndex(({ status }) => status !== 201)], busy.api)).status, 201)
  for (const edge of edges) await world.api.delete(edge.path)
  await until('they are gone with their edges', async () => {
    const left = await Promise.all([busy, calm].map(async ({ api }) => (await api.get('/captures')).captures.length))
    return left.every((count) => count === 0)
  })
})
