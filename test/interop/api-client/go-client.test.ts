/** What the official Go client (v5 and later), and so the vendor's Terraform provider and operator, send and need. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { tlsPair } from '../../conformance/tls-pair.ts'
import { type Answer, ApiClient, type Json, type Sending } from '../../support/api-client.ts'
import { type Platform, startPlatform } from '../../support/platform.ts'

const HEADERS = { 'service-version': '', 'ngrok-version': '2', 'user-agent': 'ngrok-api-go//go1.22' }
const NOBODY = '1'.repeat(27)
const LEAF = tlsPair.certificate_pem

let platform: Platform
before(async () => {
  platform = await startPlatform()
})
after(() => platform.stop())

const failures: [what: string, method: string, path: string, sending: Sending, status: number, number: number][] = [
  ['an unknown id', 'GET', `/ip_policies/ipp_${NOBODY}`, {}, 404, 222],
  ['an unknown address', 'GET', '/vaults', {}, 404, 209],
  ['a command', 'POST', `/tunnel_sessions/ts_${NOBODY}/restart`, { body: {} }, 404, 222],
  ['a module of an unknown edge', 'DELETE', `/edges/tcp/edgtcp_${NOBODY}/ip_restriction`, {}, 404, 222],
  // Not 404: users of the client would consider the edge deleted, and create it again.
  ['an unknown backend', 'POST', '/edges/tcp', { body: { backend: { backend_id: `bkdtg_${NOBODY}` } } }, 400, 6501],
  ['an unknown policy', 'POST', '/edges/tcp', { body: restriction(`ipp_${NOBODY}`) }, 400, 7007],
  ['a bad network', 'POST', '/ip_policy_rules', { body: rule('10.0.0.0/33') }, 400, 1406],
  ['a network with host bits', 'POST', '/ip_policy_rules', { body: rule('10.0.0.1/8') }, 400, 1409],
  ['a network without a mask', 'POST', '/ip_policy_rules', { body: rule('10.0.0.1') }, 400, 1413],
  ['a certificate of no authority', 'POST', '/certificate_authorities', { body: { ca_pem: LEAF } }, 400, 1913],
  ['TLS that ends elsewhere', 'POST', '/edges/tls', { body: termination({ terminate_at: 'agent' }) }, 400, 224],
  ['TLS of another version', 'POST', '/edges/tls', { body: termination({ min_version: '1.4' }) }, 400, 219],
  ['HTTPS that ends upstream', 'POST', '/edges/https', { body: termination({ terminate_at: 'upstream' }) }, 400, 7109],
  ['a bad limit', 'GET', '/ip_policies?limit=1000', {}, 400, 233],
  ['a wrong key', 'GET', '/ip_policies', { headers: { authorization: 'Bearer no' } }, 401, 203],
]
for (const [what, method, path, sending, status, number] of failures) {
  test(`${what}: the body says ${status} and number ${number}, and its details are strings`, async () => {
    const answer = await send(method, path, sending)
    const { body } = answer
    assert.deepEqual([answer.status, body.status_code, body.error_code], [status, status, `ERR_NGROK_${number}`])
    assert.equal(typeof body.msg, 'string')
    for (const detail of Object.values(body.details)) assert.equal(typeof detail, 'string')
    assert.equal(body.details.operation_id, answer.headers.get('ngrok-operation-id'))
  })
}

test('faults in what a route matches have their own numbers', async () => {
  const { body: edge } = await send('POST', '/edges/https', { body: {} })
  for (const [body, number] of [
    [{ match_type: 'regex', match: '/' }, 7130],
    [{ match_type: 'exact_path', match: 'a' }, 7131],
    [{ match_type: 'exact_path' }, 7123],
  ] as const) {
    const answer = await send('POST', `/edges/https/${edge.id}/routes`, { body })
    assert.deepEqual([answer.status, answer.body.error_code], [400, `ERR_NGROK_${number}`])
  }
})

test('bot users and service users are the same, under either name', async () => {
  const { body: made, status } = await send('POST', '/service_users', { body: { name: 'ci' } })
  assert.equal(status, 201)
  assert.match(made.id, /^bot_/)
  assert.equal(made.uri, `${platform.url}/service_users/${made.id}`)
  const { body: bot } = await send('GET', `/bot_users/${made.id}`)
  assert.deepEqual(bot, { ...made, uri: `${platform.url}/bot_users/${made.id}` })
  const { body: list } = await send('GET', '/service_users?limit=1')
  assert.deepEqual(list, { service_users: [made], uri: `${platform.url}/service_users`, next_page_uri: null })
  const taken = await send('POST', '/bot_users', { body: { name: 'ci' } })
  assert.deepEqual([taken.status, taken.body.error_code], [409, 'ERR_NGROK_4112'])
  const { body: key } = await send('POST', '/api_keys', { body: { owner_id: made.id } })
  assert.equal(key.owner_id, made.id)
  const { body: changed } = await send('PATCH', `/service_users/${made.id}`, { body: { active: false } })
  assert.deepEqual(changed, { ...made, active: false })
  assert.equal((await send('DELETE', `/service_users/${made.id}`)).status, 204)
  assert.equal((await send('GET', `/bot_users/${made.id}`)).status, 404)
  assert.equal((await send('GET', `/api_keys/${key.id}`)).status, 404)
})

test("Terraform 0.3 to 0.7's extra fields are accepted and ignored", async () => {
  const { body: policy } = await send('POST', '/ip_policies', { body: { action: 'deny', description: 'a' } })
  assert.deepEqual([policy.description, policy.action], ['a', undefined])
  const { body: domain } = await send('POST', '/reserved_domains', {
    body: { name: 'tf.example.com', http_endpoint_configuration_id: 'ec_1', https_endpoint_configuration_id: 'ec_2' },
  })
  assert.deepEqual([domain.domain, domain.region], ['tf.example.com', ''])
  const { body: updated } = await send('PATCH', `/reserved_domains/${domain.id}`, {
    body: { region: 'us', metadata: 'm', https_endpoint_configuration_id: 'ec_2' },
  })
  assert.deepEqual(updated, { ...domain, metadata: 'm' })
  const { body: addr } = await send('POST', '/reserved_addrs', { body: { endpoint_configuration_id: 'ec_3' } })
  assert.match(addr.addr, /:\d+$/)
  // Our own dialect refuses these fields, and shows the actual region.
  for (const [path, body] of [
    ['/ip_policies', { action: 'deny' }],
    ['/reserved_domains', { domain: 'b.example.com', http_endpoint_configuration_id: 'ec_1' }],
    ['/reserved_addrs', { endpoint_configuration_id: 'ec_3' }],
  ] as const) {
    await platform.admin.refused('ERR_UNKNOWN_FIELD', 'POST', path, { body })
  }
  assert.equal((await platform.admin.get(`/reserved_domains/${domain.id}`)).region, 'local')
})

test('an empty text in place of a guard is refused, and no edge is created without the guard', async () => {
  const before = (await platform.admin.get('/edges/tcp')).tcp_edges.length
  for (const body of [{ ip_restriction: '' }, { policy: '' }, { ip_restriction: { ip_policy_ids: '' } }]) {
    const answer = await send('POST', '/edges/tcp', { body })
    assert.deepEqual([answer.status, answer.body.error_code], [400, 'ERR_NGROK_215'], JSON.stringify(body))
  }
  assert.equal((await platform.admin.get('/edges/tcp')).tcp_edges.length, before)
})

test('an empty query parameter counts as omitted, in this dialect only', async () => {
  for (const path of ['/ip_policies?before_id=', '/ip_policies?beforeId=&limit=', '/ip_policies?filter=']) {
    assert.equal((await send('GET', path)).status, 200, path)
  }
  await platform.admin.refused('ERR_BAD_CURSOR', 'GET', '/ip_policies?before_id=')
})

test('`{}` creates, absent fields stay unchanged, and an empty answer is a 204', async () => {
  const { body: made, status } = await send('POST', '/ip_policies', { body: {} })
  assert.equal(status, 201)
  const { body: changed } = await send('PATCH', `/ip_policies/${made.id}`, { body: { description: 'changed' } })
  assert.deepEqual(changed, { ...made, description: 'changed' })
  const gone = await send('DELETE', `/ip_policies/${made.id}`)
  assert.deepEqual([gone.status, gone.text], [204, ''])
})

test('a module can be put without its zero values, and deleted repeatedly', async () => {
  const { body: edge } = await send('POST', '/edges/https', { body: {} })
  const route = (
    await send('POST', `/edges/https/${edge.id}/routes`, { body: { match_type: 'path_prefix', match: '/' } })
  ).body
  const path = `/edges/https/${edge.id}/routes/${route.id}/oidc`
  const least = { issuer: 'https://id.example.com', client_id: 'a', client_secret: 'b' }
  const { status, body } = await send('PUT', path, { body: least })
  assert.equal(status, 200)
  assert.deepEqual([body.enabled, body.inactivity_timeout, body.scopes, body.client_secret], [true, 0, [], 'b'])
  for (let i = 0; i < 2; i += 1) assert.equal((await send('DELETE', path)).status, 204)
})

test('lists of references are lists, with URLs at the root of the origin that was called', async () => {
  const { body: policy } = await send('POST', '/ip_policies', { body: {} })
  const { body: group } = await send('POST', '/backends/tunnel_group', { body: { labels: { a: 'b' } } })
  const { body: edge } = await send('POST', '/edges/tcp', {
    body: { ...restriction(policy.id), backend: { backend_id: group.id } },
  })
  const { url } = platform
  assert.deepEqual(edge.ip_restriction.ip_policies, [{ id: policy.id, uri: `${url}/ip_policies/${policy.id}` }])
  assert.deepEqual(edge.backend.backend, { id: group.id, uri: `${url}/backends/tunnel_group/${group.id}` })
  assert.equal(edge.uri, `${url}/edges/tcp/${edge.id}`)
})

test('pages: the next URL is requested unchanged; older clients page by last id until a page is empty', async () => {
  const ids: string[] = []
  for (let i = 0; i < 5; i += 1) ids.unshift((await platform.admin.create('/backends/http_response')).id)
  const byAddress: string[] = []
  for (let uri = '/backends/http_response?limit=2'; uri; ) {
    const { body } = await send('GET', uri)
    assert.ok(body.backends.length > 0 || body.next_page_uri === null)
    byAddress.push(...body.backends.map(({ id }: Json) => id))
    uri = body.next_page_uri
  }
  assert.deepEqual(byAddress, ids)

  const byId: string[] = []
  for (let query = 'limit=5'; ; query = `limit=5&before_id=${byId.at(-1)}`) {
    const { body } = await send('GET', `/backends/http_response?${query}`)
    if (body.backends.length === 0) {
      assert.equal(body.next_page_uri, null)
      break
    }
    byId.push(...body.backends.map(({ id }: Json) => id))
  }
  assert.deepEqual(byId, ids)
})

function restriction(id: string) {
  return { ip_restriction: { ip_policy_ids: [id] } }
}

function termination(module: object) {
  return { tls_termination: module }
}

function rule(cidr: string) {
  return { cidr, action: 'allow', ip_policy_id: `ipp_${NOBODY}` }
}

function send(method: string, path: string, sending: Sending = {}): Promise<Answer> {
  const headers = { ...sending.headers, ...HEADERS }
  return new ApiClient(platform.url, platform.apiKey).send(method, path, { ...sending, headers })
}
