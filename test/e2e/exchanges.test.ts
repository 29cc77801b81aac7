/** `/exchanges`: recent traffic over all data planes, with the decisions of modules, and who may see it. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { ApiClient, Json } from '../support/api-client.ts'
import { until } from '../support/until.ts'
import { ownAgent } from './edges/agents.ts'
import { type Recorder, recorder } from './edges/upstreams.ts'
import { World } from './edges/world.ts'

let world: World
let service: Recorder
before(async () => {
  world = await World.start({ planeCount: 2 })
  service = await recorder(world, (request, response) => {
    request.resume().on('end', () => {
      response.statusCode = request.url?.startsWith('/teapot') ? 418 : 200
      response.end('hello')
    })
  })
})
after(() => world.stop())

/** The list for a query, once it has `count` exchanges. */
async function listed(query: string, count: number, api: ApiClient = world.api): Promise<Json[]> {
  let found: Json[] = []
  await until(`${count} exchanges are listed`, async () => {
    found = (await api.get(`/exchanges?${query}`)).exchanges
    return found.length >= count
  })
  return found
}

test('an exchange is listed and read with everything known about it', async () => {
  const edge = await world.httpsTo(service, {
    ip_restriction: { ip_policy_ids: [await world.ipPolicy({ allow: ['0.0.0.0/0'] })] },
  })
  const before = Date.now()
  assert.equal((await world.ask(edge.name, { method: 'POST', path: '/a?b=%20c', body: 'question' })).status, 200)
  const [exchange] = await listed(`edge_id=${edge.id}`, 1)
  const { id, uri, started_at, duration_ms, timings, node, decided, client_ip, tunnel_session_id, ...rest } = exchange
  assert.match(id, /^ex_[0-9A-Za-z]{27}$/)
  assert.equal(uri, `${world.platform.url}/exchanges/${id}`)
  assert.match(started_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  assert.ok(Date.parse(started_at) >= before)
  assert.deepEqual(Object.keys(timings), ['modules_ms', 'dial_ms', 'wait_ms', 'receive_ms'])
  for (const ms of [duration_ms, ...Object.values(timings)]) assert.ok(Number.isInteger(ms))
  assert.match(node, /^nd_/)
  assert.equal(decided['ip_policy.decision'], 'allow')
  assert.match(client_ip, /^127\./)
  assert.equal(tunnel_session_id, null)
  assert.deepEqual(rest, {
    method: 'POST',
    host: edge.name,
    path: '/a?b=%20c',
    status: 200,
    error_code: null,
    request_bytes: 8,
    response_bytes: 5,
    protocol: 'HTTP/1.1',
    scheme: 'https',
    edge_id: edge.id,
    route_id: edge.routes[0]?.id,
    endpoint_id: null,
    tunnel_id: null,
    is_cut: false,
    capture_id: null,
    replay_of: null,
  })
  assert.deepEqual(await world.api.get(`/exchanges/${id}`), { ...exchange, request: null, response: null })
})

test('the newest come first, page by page, whichever data plane has them', async () => {
  const edge = await world.httpsTo(service)
  for (let i = 0; i < 12; i++) await world.ask(edge.name, { path: `/${i}` })
  const all = await listed(`edge_id=${edge.id}`, 12)
  const ids: string[] = all.map(({ id }) => id)
  assert.deepEqual(ids, ids.toSorted().reverse())
  const ends = all.map((each) => Date.parse(each.started_at) + each.duration_ms)
  assert.deepEqual(
    ends,
    ends.toSorted((a, b) => b - a),
  )
  const paged: Json[] = []
  let at: string | null = `/exchanges?limit=5&edge_id=${edge.id}`
  while (at !== null) {
    const page: Json = await world.api.get(at)
    assert.ok(page.exchanges.length > 0)
    paged.push(...page.exchanges)
    at = page.next_page_uri === null ? null : String(page.next_page_uri).slice(world.platform.url.length)
  }
  assert.deepEqual(paged, all)
})

test('filters narrow the list down', async () => {
  const edge = await world.httpsTo(service)
  const asked = ['/teapot/1', '/teapot?2', '/other'] as const
  for (const path of asked) await world.ask(edge.name, { path })
  await world.ask(edge.name, { method: 'PUT', path: '/teapot' })
  const of = `edge_id=${edge.id}`
  await listed(of, 4)
  const paths = async (query: string): Promise<string[]> =>
    (await world.api.get(`/exchanges?${of}&${query}`)).exchanges.map((each: Json) => `${each.method} ${each.path}`)
  assert.deepEqual(await paths('status=418'), ['PUT /teapot', 'GET /teapot?2', 'GET /teapot/1'])
  assert.deepEqual(await paths('path=/teapot/'), ['GET /teapot/1'])
  assert.deepEqual(await paths('method=PUT'), ['PUT /teapot'])
  assert.deepEqual(await paths('since=2100-01-01T00:00:00Z'), [])
  assert.equal((await paths('since=2020-01-01T00:00:00Z')).length, 4)
  assert.deepEqual(await paths('tunnel_id=tn_1'), [])
})

for (const [query, field] of [
  ['status=20', /`status`/],
  ['since=yesterday', /`since`/],
  ['edge_id=edghts_1&endpoint_id=ep_1', /`endpoint_id`/],
] as const) {
  test(`an invalid filter is refused: ${query}`, async () => {
    const { msg } = await world.api.refused('ERR_INVALID_VALUE', 'GET', `/exchanges?${query}`)
    assert.match(msg, field)
  })
}

test('an unknown filter is refused, and an unknown id is not found', async () => {
  await world.api.refused('ERR_UNKNOWN_QUERY', 'GET', '/exchanges?edge=1')
  await world.api.refused('ERR_BAD_CURSOR', 'GET', '/exchanges?before_id=edghts_1')
  await world.api.refused('ERR_NOT_FOUND', 'GET', `/exchanges/ex_${'0'.repeat(27)}`)
  await world.api.refused('ERR_NOT_FOUND', 'GET', `/exchanges/ex_${'z'.repeat(27)}`)
  await world.api.refused('ERR_NOT_FOUND', 'GET', '/exchanges/ex_1')
})

test('an endpoint of an agent is seen only by its owner and by admins', async (t) => {
  const owner = await world.platform.member()
  const other = await world.platform.member()
  const { token } = await owner.api.create('/credentials')
  const agent = await ownAgent(t, world, { authtoken: token })
  const tunnel = await agent.forward({ addr: service.address, proto: 'http' })
  const { hostname } = new URL(tunnel.url ?? '')
  assert.equal((await world.ask(hostname, { path: '/mine' })).status, 200)
  const [seen] = await listed('path=/mine', 1)
  assert.match(seen.endpoint_id, /^ep_/)
  assert.match(seen.tunnel_id, /^tn_/)
  assert.match(seen.tunnel_session_id, /^ts_/)
  assert.deepEqual([seen.edge_id, seen.route_id], [null, null])
  assert.deepEqual(await listed(`endpoint_id=${seen.endpoint_id}`, 1, owner.api), [seen])
  assert.deepEqual(await listed(`tunnel_id=${seen.tunnel_id}`, 1, owner.api), [seen])
  assert.deepEqual((await other.api.get('/exchanges?path=/mine')).exchanges, [])
  assert.equal((await owner.api.get(`/exchanges/${seen.id}`)).id, seen.id)
  await other.api.refused('ERR_NOT_FOUND', 'GET', `/exchanges/${seen.id}`)
})

test('an exchange of a pool belongs to the endpoint of the tunnel that served it', async (t) => {
  const agent = await ownAgent(t, world)
  const shared = { addr: service.address, proto: 'http', pooling: true } as const
  const first = await agent.forward(shared)
  const { hostname } = new URL(first.url ?? '')
  await agent.forward({ ...shared, domain: hostname })
  for (let i = 0; i < 4; i++) assert.equal((await world.ask(hostname, { path: '/pooled' })).status, 200)
  const seen = await listed('path=/pooled', 4)
  for (const { endpoint_id, tunnel_id } of seen) {
    assert.equal((await world.api.get(`/endpoints/${endpoint_id}`)).tunnel.id, tunnel_id)
    const own = seen.filter((each) => each.tunnel_id === tunnel_id)
    assert.deepEqual(await listed(`endpoint_id=${endpoint_id}`, own.length), own)
  }
})

test('requests that reach no edge are seen by admins only', async () => {
  const { api } = await world.platform.member()
  const { name } = await world.httpsTo(service)
  await world.ask(name, { path: '/nobody', host: 'nobody.edge.test' })
  const [seen] = await listed('path=/nobody', 1)
  assert.deepEqual([seen.host, seen.edge_id, seen.error_code], ['nobody.edge.test', null, 'ERR_ENDPOINT_OFFLINE'])
  assert.deepEqual((await api.get('/exchanges?path=/nobody')).exchanges, [])
})
