/** `/captures`: heads and bodies of exchanges are kept during a capture, masked, bounded, and seen by their owners. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { brotliCompressSync, gzipSync, zstdCompressSync } from 'node:zlib'
import type { ApiClient, Json } from '../support/api-client.ts'
import { until } from '../support/until.ts'
import { ownAgent } from './edges/agents.ts'
import { type Recorder, recorder } from './edges/upstreams.ts'
import type { Ask } from './edges/visitor.ts'
import { type HttpsEdge, World } from './edges/world.ts'

let world: World
let service: Recorder
before(async () => {
  world = await World.start({ planeCount: 2 })
  service = await recorder(world, (request, response) => {
    const received: Buffer[] = []
    request.on('data', (chunk: Buffer) => received.push(chunk))
    request.on('end', () => {
      response.setHeader('set-cookie', ['a=secret-1', 'b=secret-2'])
      response.setHeader('x-kept', 'as it is')
      const coding = request.headers['content-encoding']
      if (coding !== undefined) response.setHeader('content-encoding', coding)
      response.end(Buffer.concat(received))
    })
  })
})
after(() => world.stop())

let asked = 0

/** Sends requests until one is captured, since a capture takes a moment to start; returns it as `api` reads it. */
async function captured(
  name: string,
  about: Ask = {},
  { api = world.api, isCaptured = true }: { api?: ApiClient; isCaptured?: boolean } = {},
): Promise<Json> {
  let found: Json
  await until(isCaptured ? 'an exchange is captured' : 'an exchange is not captured', async () => {
    const path = `/captured/${++asked}`
    await world.ask(name, { ...about, path })
    await until('it is listed', async () => {
      const [exchange] = (await api.get(`/exchanges?path=${path}`)).exchanges
      found = exchange && (await api.get(`/exchanges/${exchange.id}`))
      return found !== undefined
    })
    return (found?.request !== null) === isCaptured
  })
  return found
}

const valuesOf = (headers: Json, name: string): string[] =>
  headers.filter((each: Json) => each.name.toLowerCase() === name).map((each: Json) => each.value)

const secrets = { authorization: 'Bearer secret-3', cookie: 'c=secret-4', 'x-plain': 'as it is' }

async function startCapture(edge: HttpsEdge, fields: Json = {}): Promise<Json> {
  return world.api.create('/captures', { edge_id: edge.id, bodies: true, ...fields })
}

test('heads and bodies are kept while a capture runs, without secrets', async () => {
  const edge = await world.httpsTo(service)
  const capture = await startCapture(edge)
  const { id, uri, created_at, expires_at, owner_id, ...rest } = capture
  assert.match(id, /^cap_/)
  assert.equal(uri, `${world.platform.url}/captures/${id}`)
  assert.ok(Date.parse(expires_at) > Date.parse(created_at))
  assert.equal(owner_id, world.platform.adminId)
  assert.deepEqual(rest, {
    edge_id: edge.id,
    endpoint_id: null,
    bodies: true,
    max_body_bytes: 65_536,
    duration: 600,
    unmask: false,
  })
  const body = 'grüße <script>alert(1)</script>'
  const { request, response, capture_id } = await captured(edge.name, { method: 'POST', body, headers: secrets })
  assert.equal(capture_id, id)
  assert.deepEqual(valuesOf(request.headers, 'host'), [edge.name])
  assert.deepEqual(valuesOf(request.headers, 'x-plain'), ['as it is'])
  assert.deepEqual(valuesOf(request.headers, 'authorization'), ['[masked]'])
  assert.deepEqual(valuesOf(request.headers, 'cookie'), ['[masked]'])
  assert.deepEqual(valuesOf(response.headers, 'set-cookie'), ['[masked]', '[masked]'])
  assert.deepEqual(valuesOf(response.headers, 'x-kept'), ['as it is'])
  const size = Buffer.byteLength(body)
  const kept = { size, kept: size, encoding: 'text', content: body, unpacked: null }
  assert.deepEqual([request.body, response.body], [kept, kept])
  assert.ok(!JSON.stringify([request, response]).includes('secret-'))
  assert.deepEqual((await world.api.get('/captures')).captures[0], capture)
  await world.api.delete(`/captures/${id}`)
  await captured(edge.name, {}, { isCaptured: false })
  const reported = ['capture started', 'capture ended'].map((line) =>
    world.logged(line).find((each) => each.capture === id),
  )
  assert.deepEqual(
    reported.map((line) => line?.by),
    [world.platform.adminId, world.platform.adminId],
  )
  assert.ok(!world.platform.log.join('').includes('secret-'))
})

test('an admin may have secrets kept, and no member sees them', async () => {
  const { api, id } = await world.platform.member()
  const edge = await world.httpsTo(service)
  const fields = { edge_id: edge.id, unmask: true }
  await api.refused('ERR_FORBIDDEN', 'POST', '/captures', { body: fields })
  await startCapture(edge, { unmask: true })
  const seen = await captured(edge.name, { headers: secrets })
  assert.deepEqual(valuesOf(seen.request.headers, 'authorization'), ['Bearer secret-3'])
  assert.deepEqual(valuesOf(seen.response.headers, 'set-cookie'), ['a=secret-1', 'b=secret-2'])
  const shown = await api.get(`/exchanges/${seen.id}`)
  assert.deepEqual(valuesOf(shown.request.headers, 'x-plain'), ['as it is'])
  assert.ok(!JSON.stringify(shown).includes('secret-'), id)
})

test('without bodies only heads are kept', async () => {
  const edge = await world.httpsTo(service)
  await startCapture(edge, { bodies: false })
  const { request, response } = await captured(edge.name, { method: 'POST', body: 'x' })
  assert.deepEqual([request.body, response.body], [null, null])
})

test('only the start of a long body is kept, and a body that is not text is given in base64', async () => {
  const edge = await world.httpsTo(service)
  await startCapture(edge, { max_body_bytes: 1000 })
  const body = Buffer.alloc(100_000, Buffer.from([0xff, 0x00, 0x80]))
  const { request, response, request_bytes } = await captured(edge.name, { method: 'POST', body })
  assert.equal(request_bytes, 100_000)
  for (const each of [request.body, response.body]) {
    assert.deepEqual([each.size, each.kept, each.encoding], [100_000, 1000, 'base64'])
    assert.deepEqual(Buffer.from(each.content, 'base64'), body.subarray(0, 1000))
  }
})

test('a compressed body is shown as sent and decompressed, and tools get the latter', async () => {
  const edge = await world.httpsTo(service)
  await startCapture(edge)
  const text = '{"grüße":1}'
  for (const [coding, body] of [
    ['br', brotliCompressSync(text)],
    ['zstd', zstdCompressSync(text)],
    ['gzip', gzipSync(text)],
  ] as const) {
    const headers = { 'content-encoding': coding }
    const { id, request, response } = await captured(edge.name, { method: 'POST', body, headers })
    const size = Buffer.byteLength(text)
    for (const { body: shown } of [request, response]) {
      assert.deepEqual([shown.encoding, shown.size], ['base64', body.length])
      assert.deepEqual(shown.unpacked, { coding, size, is_cut: false, content: text })
      assert.deepEqual(Buffer.from(shown.content, 'base64'), body)
    }
    const { log } = await world.api.get(`/exchanges/${id}/har`)
    assert.deepEqual(log.entries[0].response.content, {
      ...{ mimeType: '', size, compression: size - body.length, text },
    })
  }
})

test('a capture ends by itself', async () => {
  const edge = await world.httpsTo(service)
  const { id } = await startCapture(edge, { duration: 1 })
  await until('it is gone', async () => (await world.api.send('GET', `/captures/${id}`)).status === 404)
  await captured(edge.name, {}, { isCaptured: false })
  assert.equal(world.logged('capture expired').filter(({ capture }) => capture === id).length, 1)
  await startCapture(edge)
})

test('an edge has one capture at a time', async () => {
  const edge = await world.httpsTo(service)
  await startCapture(edge)
  await world.api.refused('ERR_CAPTURE_RUNS', 'POST', '/captures', { body: { edge_id: edge.id } })
})

test('an endpoint can be captured by its owner, but by no other member', async (t) => {
  const owner = await world.platform.member()
  const other = await world.platform.member()
  const { token } = await owner.api.create('/credentials')
  const agent = await ownAgent(t, world, { authtoken: token })
  const tunnel = await agent.forward({ addr: service.address, proto: 'http' })
  const { hostname } = new URL(tunnel.url ?? '')
  const { endpoints } = await world.api.get('/endpoints')
  const { id } = endpoints.find((each: Json) => each.public_url === tunnel.url)
  const body = { endpoint_id: id, bodies: true }
  const { msg } = await other.api.refused('ERR_UNKNOWN_REFERENCE', 'POST', '/captures', { body })
  assert.match(msg, /`endpoint_id`/)
  const capture = await owner.api.create('/captures', body)
  assert.deepEqual([capture.edge_id, capture.endpoint_id, capture.owner_id], [null, id, owner.id])
  await other.api.refused('ERR_NOT_FOUND', 'GET', `/captures/${capture.id}`)
  await other.api.refused('ERR_NOT_FOUND', 'DELETE', `/captures/${capture.id}`)
  assert.deepEqual((await other.api.get('/captures')).captures, [])
  const seen = await captured(hostname, { method: 'POST', body: 'mine' }, { api: owner.api })
  assert.deepEqual([seen.capture_id, seen.request.body.content], [capture.id, 'mine'])
  await owner.api.delete(`/captures/${capture.id}`)
})

for (const [what, body, code, field] of [
  ['nothing to capture', {}, 'ERR_FIELD_REQUIRED', /`edge_id`/],
  ['two things', { edge_id: 'edghts_1', endpoint_id: 'ep_1' }, 'ERR_INVALID_VALUE', /`endpoint_id`/],
  ['an unknown edge', { edge_id: 'edghts_1' }, 'ERR_UNKNOWN_REFERENCE', /`edge_id`/],
  ['an unknown endpoint', { endpoint_id: 'ep_1' }, 'ERR_UNKNOWN_REFERENCE', /`endpoint_id`/],
  ['more than a day', { edge_id: 'edghts_1', duration: 86_401 }, 'ERR_INVALID_VALUE', /`duration`/],
  ['large bodies', { edge_id: 'edghts_1', max_body_bytes: 262_145 }, 'ERR_INVALID_VALUE', /`max_body_bytes`/],
] as const) {
  test(`a capture is refused: ${what}`, async () => {
    const { msg } = await world.api.refused(code, 'POST', '/captures', { body })
    assert.match(msg, field)
  })
}
