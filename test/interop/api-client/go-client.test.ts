/** What the official Go client (v5 and later), and so the vendor's Terraform provider and operator, send and need. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Answer, ApiClient, type Json, type Sending } from '../../support/api-client.ts'
import { type Platform, startPlatform } from '../../support/platform.ts'

const HEADERS = { 'service-version': '', 'ngrok-version': '2', 'user-agent': 'ngrok-api-go//go1.22' }
const NOBODY = '1'.repeat(27)

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
  // Not 404: its users would take the edge for gone and make it again.
  ['an unknown backend', 'POST', '/edges/tcp', { body: { backend: { backend_id: `bkdtg_${NOBODY}` } } }, 400, 6501],
  ['an unknown policy', 'POST', '/edges/tcp', { body: restriction(`ipp_${NOBODY}`) }, 400, 7007],
  ['a bad network', 'POST', '/ip_policy_rules', { body: rule('10.0.0.1/8') }, 400, 1406],
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

test('`{}` creates, absent fields are left alone, and an empty answer is a 204', async () => {
  const { body: made, status } = await send('POST', '/ip_policies', { body: {} })
  assert.equal(status, 201)
  const { body: changed } = await send('PATCH', `/ip_policies/${made.id}`, { body: { description: 'changed' } })
  assert.deepEqual(changed, { ...made, description: 'changed' })
  const gone = await send('DELETE', `/ip_policies/${made.id}`)
  assert.deepEqual([gone.status, gone.text], [204, ''])
})

test('a module is put without its zero values, and deleted as often as one likes', async () => {
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

test('references that are lists are lists, and point to the root of the origin that was called', async () => {
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

test('pages: the next address is asked as it stands; older clients go on by last id until a page is empty', async () => {
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

function rule(cidr: string) {
  return { cidr, action: 'allow', ip_policy_id: `ipp_${NOBODY}` }
}

function send(method: string, path: string, sending: Sending = {}): Promise<Answer> {
  const headers = { ...sending.headers, ...HEADERS }
  return new ApiClient(platform.url, platform.apiKey).send(method, path, { ...sending, headers })
}
