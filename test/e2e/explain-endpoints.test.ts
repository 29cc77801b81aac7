/** `POST /policy/explain` for endpoints of agents: it uses the options of their binds, as for stored edges. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Json } from '../support/api-client.ts'
import { ownAgent } from './edges/agents.ts'
import { type Recorder, recorder } from './edges/upstreams.ts'
import { World } from './edges/world.ts'

let world: World
let service: Recorder
before(async () => {
  world = await World.start()
  service = await recorder(world)
})
after(() => world.stop())

type Agent = Awaited<ReturnType<typeof ownAgent>>
type Tunnel = Parameters<Agent['forward']>[0]

/** The id of an agent's endpoint. */
async function endpoint(t: Parameters<typeof ownAgent>[0], options: Omit<Tunnel, 'addr'>, authtoken?: string) {
  const agent = await ownAgent(t, world, authtoken === undefined ? {} : { authtoken })
  const tunnel = await agent.forward({ addr: service.address, ...options })
  const { endpoints } = await world.api.get('/endpoints')
  const { id } = endpoints.find((each: Json) => each.public_url === tunnel.url)
  assert.match(id, /^ep_/)
  return { id, url: new URL(tunnel.url ?? ''), close: () => tunnel.close() }
}

async function explain(body: unknown): Promise<Json> {
  const answer = await world.api.send('POST', '/policy/explain', { body })
  assert.equal(answer.status, 200, answer.text)
  return answer.body
}

const noPut = {
  on_http_request: [{ name: 'no put', expressions: ["req.method == 'PUT'"], actions: [{ type: 'deny' }] }],
}

test('the explanation of an HTTPS endpoint matches what its visitors get', async (t) => {
  const { id, url } = await endpoint(t, {
    proto: 'http',
    basic_auth: ['jane:correct horse'],
    traffic_policy: noPut,
    response_headers: { add: { 'x-said': 'yes' } },
  })
  const headers = { authorization: `Basic ${btoa('jane:correct horse')}` }
  const seen = service.seen.length
  const stranger = await explain({ edge_id: id, request: {} })
  assert.equal(stranger.outcome.error_code, 'ERR_CREDENTIALS_REQUIRED')
  const put = await explain({ edge_id: id, request: { method: 'PUT', headers } })
  assert.deepEqual([put.outcome.verdict, put.outcome.status_code], ['answers', 403])
  const [rule] = put.steps.find((step: Json) => step.module === 'policy').rules
  assert.deepEqual([rule.name, rule.matched], ['no put', true])
  const get = await explain({ edge_id: id, request: { headers } })
  assert.deepEqual([get.outcome.verdict, get.outcome.route_id], ['passes', null])
  assert.deepEqual(get.outcome.headers['x-said'], ['yes'])
  assert.equal(service.seen.length, seen)
  for (const reported of [stranger, put, get]) assert.ok(!JSON.stringify(reported).includes('correct horse'))
  assert.equal((await world.ask(url.hostname, { headers })).status, 200)
  assert.equal((await world.ask(url.hostname, { method: 'PUT', headers })).status, 403)
})

test('an endpoint without TLS is explained over HTTP', async (t) => {
  const { id } = await endpoint(t, { proto: 'http', schemes: ['http'], traffic_policy: noPut })
  assert.equal((await explain({ edge_id: id, request: {} })).outcome.verdict, 'passes')
  assert.equal((await explain({ edge_id: id, request: { method: 'PUT' } })).outcome.status_code, 403)
  const body = { edge_id: id, request: { url: 'https://a.test/' } }
  const { msg } = await world.api.refused('ERR_INVALID_VALUE', 'POST', '/policy/explain', { body })
  assert.match(msg, /`request\.url`/)
})

test('connections of a TCP endpoint are explained', async (t) => {
  const { id } = await endpoint(t, { proto: 'tcp', ip_restriction: { allow: ['198.51.100.0/24'], deny: [] } })
  const reported = async (client_ip: string) => (await explain({ edge_id: id, connection: { client_ip } })).outcome
  assert.equal((await reported('198.51.100.1')).verdict, 'passes')
  assert.equal((await reported('203.0.113.1')).error_code, 'ERR_IP_REFUSED')
})

test('rate limits start from what real visitors have used', async (t) => {
  const limit = { name: 'one', capacity: 1, rate: '24h', bucket_key: ['conn.client_ip'] }
  const traffic_policy = { on_http_request: [{ actions: [{ type: 'rate-limit', config: limit }] }] }
  const { id, url } = await endpoint(t, { proto: 'http', traffic_policy })
  const request = { edge_id: id, request: {}, connection: { client_ip: '127.0.0.1' } }
  assert.equal((await explain(request)).outcome.verdict, 'passes')
  assert.equal((await world.ask(url.hostname)).status, 200)
  assert.equal((await explain(request)).outcome.error_code, 'ERR_RATE_LIMITED')
})

test('the endpoint id of a stored edge explains that edge', async () => {
  const edge = await world.httpsTo(service, { policy: { inbound: [{ actions: [{ type: 'deny' }] }] } })
  const { endpoints } = await world.api.get('/endpoints')
  const { id } = endpoints.find((each: Json) => each.edge?.id === edge.id)
  const { outcome } = await explain({ edge_id: id, request: {} })
  assert.deepEqual([outcome.status_code, outcome.route_id], [403, edge.routes[0]?.id])
})

test('an endpoint is explained to the owner of its agent and to admins alone', async (t) => {
  const secret = 'correct horse'
  const owner = await world.platform.member()
  const { token, id: credential } = await owner.api.create('/credentials')
  assert.match(credential, /^cr_/)
  const { id } = await endpoint(t, { proto: 'http', basic_auth: [`jane:${secret}`] }, token)
  const headers = { authorization: `Basic ${btoa(`jane:${secret}`)}` }
  const { api: other } = await world.platform.member()
  for (const body of [
    { edge_id: id, request: {} },
    { edge_id: id, request: { headers } },
  ]) {
    const { status_code, msg } = await other.refused('ERR_FORBIDDEN', 'POST', '/policy/explain', { body })
    assert.deepEqual([status_code, msg.includes('owner')], [403, true])
    for (const api of [owner.api, world.api]) {
      assert.equal((await api.send('POST', '/policy/explain', { body })).status, 200)
    }
  }
})

test('an endpoint that is not online is refused by name', async (t) => {
  const { id, close } = await endpoint(t, { proto: 'http' })
  await close()
  for (const gone of [id, 'ep_1']) {
    const body = { edge_id: gone, request: {} }
    const { msg, status_code } = await world.api.refused('ERR_UNKNOWN_REFERENCE', 'POST', '/policy/explain', { body })
    assert.equal(status_code, 400)
    assert.match(msg, /`edge_id`: there is no endpoint/)
  }
})
