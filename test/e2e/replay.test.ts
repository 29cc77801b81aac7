/** `POST /exchanges/{id}/replay`: a request goes through its edge again, unchanged or changed, for those who may. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { ApiClient, Json } from '../support/api-client.ts'
import { until } from '../support/until.ts'
import { type Recorder, recorder } from './edges/upstreams.ts'
import type { Ask } from './edges/visitor.ts'
import { type HttpsEdge, type Modules, World } from './edges/world.ts'

let world: World
let service: Recorder
const bodies: string[] = []
before(async () => {
  world = await World.start({ planeCount: 2 })
  service = await recorder(world, (request, response) => {
    const received: Buffer[] = []
    request.on('data', (chunk: Buffer) => received.push(chunk))
    request.on('end', () => {
      bodies.push(Buffer.concat(received).toString())
      response.setHeader('x-count', String(bodies.length))
      response.end(`answer ${bodies.length}`)
    })
  })
})
after(() => world.stop())

let asked = 0

/** A captured exchange of `edge`. */
async function captured(edge: HttpsEdge, about: Ask = {}): Promise<Json> {
  let found: Json
  await until('an exchange is captured', async () => {
    const path = `/replay/${++asked}?q=1`
    await world.ask(edge.name, { path, ...about })
    await until('it is listed', async () => {
      const query = `edge_id=${edge.id}&path=${encodeURIComponent(about.path ?? path)}&limit=1`
      const [exchange] = (await world.api.get(`/exchanges?${query}`)).exchanges
      found = exchange && (await world.api.get(`/exchanges/${exchange.id}`))
      return found !== undefined
    })
    return found?.request !== null
  })
  return found
}

async function capturedEdge(fields: Json = {}, modules: Modules = {}): Promise<HttpsEdge> {
  const edge = await world.httpsTo(service, modules)
  await world.api.create('/captures', { edge_id: edge.id, bodies: true, ...fields })
  return edge
}

async function replay(id: string, body: unknown = {}, api: ApiClient = world.api): Promise<Json> {
  const answer = await api.send('POST', `/exchanges/${id}/replay`, { body })
  assert.equal(answer.status, 201, answer.text)
  return answer.body
}

test('a request is sent again unchanged, and its answer is kept', async () => {
  const edge = await capturedEdge()
  const headers = { 'x-a': 'b', 'content-type': 'text/plain' }
  const first = await captured(edge, { method: 'POST', body: 'a question', headers })
  const count = service.seen.length
  const second = await replay(first.id)
  assert.equal(service.seen.length, count + 1)
  const { last } = service
  assert.deepEqual([last.method, last.url, bodies.at(-1)], ['POST', first.path, 'a question'])
  assert.deepEqual([last.get('x-a'), last.get('content-type'), last.get('host')], ['b', 'text/plain', edge.name])
  assert.equal(last.get('x-forwarded-for'), first.client_ip)
  assert.equal(last.get('postern-replay'), first.id)
  assert.notEqual(second.id, first.id)
  assert.deepEqual([second.replay_of, second.status, second.edge_id], [first.id, 200, edge.id])
  assert.equal(second.response.body.content, `answer ${bodies.length}`)
  assert.deepEqual((await replay(second.id)).replay_of, second.id)
  const [logged] = world.logged('exchange replayed').filter(({ exchange }) => exchange === first.id)
  assert.deepEqual([logged?.replay, logged?.by], [second.id, world.platform.adminId])
})

test('method, path, headers and body can be changed', async () => {
  const first = await captured(await capturedEdge())
  const headers = [{ name: 'X-Other', value: 'yes' }]
  const body = { content: Buffer.from('other').toString('base64'), encoding: 'base64' }
  const second = await replay(first.id, { method: 'PUT', path: '/other?x=y', headers, body })
  const { last } = service
  assert.deepEqual([last.method, last.url, bodies.at(-1)], ['PUT', '/other?x=y', 'other'])
  assert.deepEqual([last.get('x-other'), second.path, second.method], ['yes', '/other?x=y', 'PUT'])
  assert.deepEqual([last.get('postern-replay'), last.get('x-forwarded-for')], [first.id, second.client_ip])
})

test('a changed request comes from its caller: the address of its visitor opens nothing', async () => {
  const edge = await capturedEdge()
  const first = await captured(edge, { from: '127.0.0.77' })
  assert.equal(first.client_ip, '127.0.0.77')
  const { id } = await world.api.create('/ip_policies')
  await world.api.create('/ip_policy_rules', { ip_policy_id: id, cidr: '127.0.0.77/32', action: 'allow' })
  await world.api.put(`${edge.routes[0]?.path}/ip_restriction`, { ip_policy_ids: [id] })
  const count = service.seen.length
  const changes = [
    { method: 'DELETE' },
    { path: '/admin' },
    { headers: [{ name: 'X-Forwarded-For', value: '127.0.0.77' }] },
    { body: { content: 'x' } },
  ]
  for (const change of changes) {
    const { status, client_ip } = await replay(first.id, change)
    assert.deepEqual([status, client_ip], [403, '127.0.0.1'], JSON.stringify(change))
  }
  assert.equal(service.seen.length, count)
  const again = await replay(first.id)
  assert.deepEqual([again.status, again.client_ip], [200, '127.0.0.77'])
  const { last } = service
  assert.deepEqual([last.get('x-forwarded-for'), last.get('postern-replay')], ['127.0.0.77', first.id])
})

test('all modules of the edge run again', async () => {
  const edge = await capturedEdge()
  const first = await captured(edge)
  const policy = { inbound: [{ name: 'nobody', actions: [{ type: 'deny' }] }] }
  await world.api.put(`${edge.routes[0]?.path}/policy`, policy)
  await world.inForce()
  const count = service.seen.length
  const second = await replay(first.id)
  assert.deepEqual([second.status, service.seen.length], [403, count])
})

test('values that were masked or not kept must be given', async () => {
  const edge = await capturedEdge({ max_body_bytes: 3 })
  const headers = { authorization: 'Bearer secret' }
  const first = await captured(edge, { method: 'POST', headers, body: 'a long one' })
  const at = `/exchanges/${first.id}/replay`
  const refused = await world.api.refused('ERR_NOT_REPLAYABLE', 'POST', at, { body: {} })
  assert.match(refused.msg, /`authorization`/i)
  const masked = [{ name: 'authorization', value: '[masked]' }]
  const { msg } = await world.api.refused('ERR_INVALID_VALUE', 'POST', at, { body: { headers: masked } })
  assert.match(msg, /`headers\[0\]\.value`/)
  const given = [{ name: 'authorization', value: 'Bearer mine' }]
  const noBody = await world.api.refused('ERR_NOT_REPLAYABLE', 'POST', at, { body: { headers: given } })
  assert.match(noBody.msg, /`body`/)
  await replay(first.id, { headers: given, body: { content: 'all of it' } })
  assert.deepEqual([service.last.get('authorization'), bodies.at(-1)], ['Bearer mine', 'all of it'])
})

test('an exchange that was not captured can be sent with headers of the caller', async () => {
  const edge = await world.httpsTo(service)
  await world.ask(edge.name, { path: '/bare' })
  let id = ''
  await until('it is listed', async () => {
    const [found] = (await world.api.get(`/exchanges?edge_id=${edge.id}`)).exchanges
    id = found?.id ?? ''
    return id !== ''
  })
  await world.api.refused('ERR_NOT_REPLAYABLE', 'POST', `/exchanges/${id}/replay`, { body: {} })
  const made = await replay(id, { headers: [] })
  assert.deepEqual([made.status, made.path, made.capture_id], [200, '/bare', null])
})

test('secrets that an admin had kept are not sent again for a member', async () => {
  const edge = await capturedEdge({ unmask: true })
  const first = await captured(edge, { headers: { authorization: 'Bearer secret' } })
  const { api } = await world.platform.member()
  await api.refused('ERR_NOT_REPLAYABLE', 'POST', `/exchanges/${first.id}/replay`, { body: {} })
  const second = await replay(first.id)
  assert.equal(service.last.get('authorization'), 'Bearer secret')
  assert.ok(!JSON.stringify(second).includes('Bearer secret'))
  await replay(first.id, { headers: [] }, api)
  assert.equal(service.last.get('authorization'), undefined)
})

test('a replay reaches no other edge, and no edge that requires a client certificate', async () => {
  const [edge, other] = [await capturedEdge(), await world.httpsTo(service)]
  const first = await captured(edge)
  const at = `/exchanges/${first.id}/replay`
  const count = service.seen.length
  const headers = [{ name: 'Host', value: other.name }]
  await world.api.refused('ERR_NOT_REPLAYABLE', 'POST', at, { body: { headers } })
  const { id } = await world.api.create('/certificate_authorities', { ca_pem: world.platform.ca })
  await world.api.put(`${edge.path}/mutual_tls`, { certificate_authority_ids: [id] })
  await world.inForce()
  const { msg } = await world.api.refused('ERR_NOT_REPLAYABLE', 'POST', at, { body: {} })
  assert.match(msg, /certificate/)
  assert.equal(service.seen.length, count)
})

for (const [what, body] of [
  ['an invalid method', { method: 'G T' }],
  ['CONNECT', { method: 'CONNECT' }],
  ['a path with a space', { path: '/a b' }],
  ['a path of another host', { path: 'https://example.com/' }],
  ['a header with a line break', { headers: [{ name: 'x', value: 'a\r\nb: c' }] }],
  ['an invalid header name', { headers: [{ name: 'a b', value: 'c' }] }],
] as const) {
  test(`a change is refused: ${what}`, async () => {
    const [found] = (await world.api.get('/exchanges?limit=1')).exchanges
    await world.api.refused('ERR_INVALID_VALUE', 'POST', `/exchanges/${found.id}/replay`, { body })
  })
}

test('an exchange can be exported as HAR and as a curl command', async () => {
  const edge = await capturedEdge()
  const first = await captured(edge, { method: 'POST', body: "it's", headers: { cookie: 'a=b' } })
  const { command } = await world.api.get(`/exchanges/${first.id}/curl`)
  assert.match(command, /^# masked: cookie\ncurl /i)
  assert.ok(command.includes(`'it'\\''s'`) && command.includes(edge.name), command)
  const { log } = await world.api.get(`/exchanges/${first.id}/har`)
  assert.deepEqual([log.version, log.entries.length, log.entries[0].request.method], ['1.2', 1, 'POST'])
  assert.ok(!JSON.stringify(log).includes('a=b'))
})

test('an exported exchange leads to the public port, even if no capture kept its headers', async () => {
  const edge = await world.httpsTo(service)
  const path = `/export/${++asked}`
  await world.ask(edge.name, { path })
  const id: string = await until('it is listed', async () => {
    const [exchange] = (await world.api.get(`/exchanges?edge_id=${edge.id}`)).exchanges
    return exchange?.id
  })
  const url = `https://${edge.name}:${world.platform.httpsPort}${path}`
  const { command } = await world.api.get(`/exchanges/${id}/curl`)
  assert.ok(command.startsWith('# headers were not kept\n') && command.endsWith(`'${url}'`), command)
  assert.equal((await world.api.get(`/exchanges/${id}/har`)).log.entries[0].request.url, url)
})
