import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { startPlatform } from '../../test/support/platform.ts'
import { until } from '../../test/support/until.ts'
import { readInLine } from './change.ts'
import { spread } from './scene.ts'
import { seedStore } from './seed.ts'

test('seeded edges are what the API would have stored, and a change makes the server read only that edge again', async (t) => {
  const dataDir = await mkdtemp(join(tmpdir(), 'postern-seed-'))
  t.after(() => rm(dataDir, { recursive: true, force: true }))
  const { edges } = await seedStore(dataDir, { edges: 12, routes: ['/a', '/b'] })
  const platform = await startPlatform({ dataDir, flags: { 'log-level': 'debug' } })
  t.after(() => platform.stop())
  const { admin, log } = platform

  const listed: { id: string; hostports: string[] }[] = (await admin.get('/edges/https')).https_edges
  assert.deepEqual(
    listed.map(({ id, hostports }) => ({ id, hostports })).reverse(),
    edges.map(({ id, name }) => ({ id, hostports: [`${name}:443`] })),
  )
  const [first, second] = edges
  assert.ok(first && second)
  const routes = async (id: string) =>
    ((await admin.get(`/edges/https/${id}`)).routes as { match: string }[]).map(({ match }) => match)
  assert.deepEqual([await routes(first.id), await routes(second.id)], [['/', '/a', '/b'], ['/']])

  // An edge made through the API looks the same.
  const backendId: string = (await admin.create('/backends/static', { address: '127.0.0.1:9' })).id
  const made = await admin.create('/edges/https', { hostports: ['made.bench.test:443'] })
  const body = { match_type: 'path_prefix', match: '/', backend: { backend_id: backendId } }
  await admin.create(`/edges/https/${made.id}/routes`, body)
  const shape = (value: unknown): unknown =>
    JSON.parse(JSON.stringify(value), (key, each) => (/^(id|uri|created_at|edge_id|hostports)$/.test(key) ? key : each))
  assert.deepEqual(
    shape(await admin.get(`/edges/https/${second.id}`)),
    shape(await admin.get(`/edges/https/${made.id}`)),
  )

  const before = log.length
  await admin.put(`/edges/https/${second.id}/routes/${second.routeId}/response_headers`, { add: { 'x-a': '1' } })
  const readAgain = () => log.slice(before).flatMap(readInLine)
  await until('that the edge is read again', () => readAgain().length > 0)
  // Once by each worker.
  assert.deepEqual([...new Set(readAgain())], [second.id])
})

test('edges are picked evenly from a store', () => {
  const edges = Array.from({ length: 25 }, (_, i) => ({ id: `e${i}`, name: '', routeId: '' }))
  const picked = (count: number) => spread({ dataDir: '', edges }, count).map(({ id }) => id)
  assert.deepEqual(picked(5), ['e0', 'e5', 'e10', 'e15', 'e20'])
  assert.equal(picked(100).length, 25)
})
