/** D61: what the workers of a node count, they count as one. */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { ApiClient, type Json } from '../support/api-client.ts'
import { type ServerProcess, serve } from '../support/server-process.ts'
import { until } from '../support/until.ts'
import { httpUpstream, type Owner } from '../support/upstream.ts'
import { visit } from '../support/visitor.ts'
import { socketsAtEach, visitorOver, type WorkerVisitor } from '../support/worker-sockets.ts'

const API_KEY = 'test_api_key_of_the_first_admin_0001'

/** How many requests are let through. */
const CAPACITY = 30

const portOf = (address: string): number => Number(address.split(':').at(-1))

for (const workers of [2, 4]) {
  describe(`${workers} workers`, () => {
    const closers: (() => unknown)[] = []
    const owner: Owner = { after: (close) => void closers.unshift(close) }
    let server: ServerProcess
    let api: ApiClient
    let ca: string
    /** Requests that came to the service, which answers none of them well. */
    let seen = 0
    let broken: Json
    let through: Json
    before(async () => {
      const dataDir = mkdtempSync(join(tmpdir(), 'postern-together-'))
      owner.after(() => rmSync(dataDir, { recursive: true, force: true }))
      server = await serve({
        dataDir,
        env: { POSTERN_BOOTSTRAP_API_KEY: API_KEY },
        flags: { workers: String(workers), domain: 'together.test' },
      })
      owner.after(() => server.stop())
      api = new ApiClient(server.url, API_KEY)
      ca = readFileSync(join(dataDir, 'ca.pem'), 'utf8')
      const service = await httpUpstream(owner, (_, response) => {
        seen++
        response.writeHead(500).end()
      })
      broken = await api.create('/backends/static', { address: service.address })
      through = await api.create('/backends/http_response', { body: 'through' })
    })
    after(async () => {
      for (const close of closers) await close()
    })

    /** The statuses of requests to a new edge, of which each worker gets every nth. */
    const statusesInTurn = async (name: string, count: number, route: Json): Promise<number[]> => {
      const edge = await api.create('/edges/https', { hostports: [`${name}:443`] })
      await api.create(`/edges/https/${edge.id}/routes`, { match_type: 'path_prefix', match: '/', ...route })
      // On a busy machine a write may be answered before all workers have it.
      const free = { match_type: 'exact_path', match: '/free', backend: { backend_id: through.id } }
      await api.create(`/edges/https/${edge.id}/routes`, free)
      const url = `https://${name}:${portOf(server.https)}`
      const isServed = async () => (await visit(url, { ca }, { path: '/free' })).status === 200
      await until('the name is known', () => isServed().catch(() => false))
      const visitors: WorkerVisitor[] = []
      for (const [socket] of await socketsAtEach(server, server.https, { workers })) {
        const visitor = await visitorOver(socket ?? assert.fail(), name, ca)
        await until('this worker serves the edge', async () => (await visitor.ask('/free')).status === 200)
        visitors.push(visitor)
      }
      assert.equal(visitors.length, workers)
      const statuses: number[] = []
      for (let i = 0; i < count; i++) statuses.push((await visitors[i % workers]?.ask())?.status ?? 0)
      for (const visitor of visitors) visitor.close()
      return statuses
    }
    /** At least as many as one process would let through, and at most one more for each worker. */
    const isCapacity = (passed: number): void => {
      assert.ok(passed >= CAPACITY && passed <= CAPACITY + workers, `${passed} of ${CAPACITY} passed`)
    }

    test('let as many requests through a rate limit as one would', async () => {
      const config = { name: 'all', capacity: CAPACITY, rate: '600s', bucket_key: ["'all'"] }
      const policy = { inbound: [{ name: 'limit', actions: [{ type: 'rate-limit', config }] }] }
      const statuses = await statusesInTurn('limited.test', 3 * CAPACITY, {
        backend: { backend_id: through.id },
        policy,
      })
      const passed = statuses.filter((status) => status === 200).length
      assert.equal(passed + statuses.filter((status) => status === 429).length, statuses.length)
      isCapacity(passed)
    })

    test('send as many failing requests to a service as one would, before its circuit is open for all', async () => {
      const breaker = { tripped_duration: 600, rolling_window: 600, volume_threshold: CAPACITY }
      const route = { backend: { backend_id: broken.id }, circuit_breaker: breaker }
      const statuses = await statusesInTurn('broken.test', 3 * CAPACITY, route)
      assert.equal(statuses.filter((status) => status === 500).length, seen)
      isCapacity(seen)
      assert.equal(statuses.at(-1), 503)
    })
  })
}
