/** The same calls in both dialects: one service, two spellings, and nothing of the vendor's without its header. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Answer, ApiClient, type Sending } from '../../support/api-client.ts'
import { type Platform, startPlatform } from '../../support/platform.ts'

const NOBODY = '1'.repeat(27)
const OURS = {}
const THEIRS = { 'service-version': '', 'ngrok-version': '2' }
const BOTH = { 'service-version': '2', 'ngrok-version': '2' }

let platform: Platform
before(async () => {
  platform = await startPlatform({ flags: { 'api-rate-limit': '0' } })
})
after(() => platform.stop())

const refusals: [method: string, path: string, sending: Sending, status: number, ours: string, theirs: number][] = [
  ['GET', `/api_keys/ak_${NOBODY}`, {}, 404, 'NOT_FOUND', 222],
  ['GET', '/nowhere', {}, 404, 'ROUTE_NOT_FOUND', 209],
  ['PUT', '/api_keys', {}, 405, 'METHOD_NOT_ALLOWED', 209],
  ['POST', '/api_keys', { body: '{' }, 400, 'BODY_MALFORMED', 213],
  ['POST', '/api_keys', { body: 'a', headers: { 'content-type': 'text/plain' } }, 415, 'BODY_TYPE', 210],
  ['POST', '/api_keys', { body: `"${'a'.repeat(1_100_000)}"` }, 413, 'BODY_TOO_LARGE', 812],
  ['POST', '/api_keys', { body: { colour: 'red' } }, 400, 'UNKNOWN_FIELD', 214],
  ['POST', '/api_keys', { body: { description: 'a'.repeat(256) } }, 400, 'FIELD_TOO_LONG', 604],
  ['GET', '/api_keys?limit=0', {}, 400, 'BAD_LIMIT', 233],
  ['GET', '/api_keys?x=1', {}, 400, 'UNKNOWN_QUERY', 231],
  ['GET', '/api_keys?before_id=x', {}, 400, 'BAD_CURSOR', 223],
  ['POST', `/tunnel_sessions/ts_${NOBODY}/stop`, { body: 'anything' }, 404, 'NOT_FOUND', 222],
  ['GET', '/api_keys', { headers: { authorization: '' } }, 401, 'UNAUTHENTICATED', 203],
  ['GET', '/api_keys', { headers: { authorization: 'Bearer no' } }, 401, 'UNAUTHENTICATED', 203],
  ['GET', '/nowhere', { headers: { authorization: '' } }, 401, 'UNAUTHENTICATED', 203],
]
for (const [method, path, sending, status, ours, number] of refusals) {
  test(`${method} ${path} is ${status} ${ours} in ours and ${number} in theirs`, async () => {
    const answers: [headers: Record<string, string>, code: string][] = [
      [OURS, `ERR_${ours}`],
      [THEIRS, `ERR_NGROK_${number}`],
      [BOTH, `ERR_NGROK_${number}`],
    ]
    const messages = []
    for (const [headers, code] of answers) {
      const answer = await send(method, path, sending, headers)
      assert.deepEqual([answer.status, answer.body.status_code, answer.body.error_code], [status, status, code])
      messages.push(answer.body.msg)
      checkOperationHeaders(answer, headers === OURS)
      assert.equal(answer.body.details.operation_id, answer.headers.get('service-operation-id'))
    }
    assert.equal(new Set(messages).size, 1)
  })
}

test('an unknown version of theirs is refused in their spelling', async () => {
  const answer = await send('GET', '/api_keys', {}, { 'service-version': '', 'ngrok-version': '3' })
  assert.deepEqual([answer.status, answer.body.error_code], [400, 'ERR_NGROK_217'])
  const none = await send('GET', '/api_keys', {}, { 'service-version': '' })
  assert.deepEqual([none.status, none.body.error_code], [400, 'ERR_VERSION_MISSING'])
})

test('`beforeId` is a cursor in theirs and unknown in ours', async () => {
  const { id } = await platform.admin.create('/ip_policies')
  const older = await platform.admin.create('/ip_policies')
  const page = await send('GET', `/ip_policies?beforeId=${older.id}&limit=1`, {}, THEIRS)
  assert.deepEqual(
    page.body.ip_policies.map((each: { id: string }) => each.id),
    [id],
  )
  assert.equal((await send('GET', `/ip_policies?beforeId=${id}`, {}, OURS)).body.error_code, 'ERR_UNKNOWN_QUERY')
  const twice = await send('GET', `/ip_policies?beforeId=${id}&before_id=${id}`, {}, THEIRS)
  assert.equal(twice.body.error_code, 'ERR_NGROK_232')
  const bad = await send('GET', '/ip_policies?beforeId=x', {}, THEIRS)
  assert.equal(bad.body.error_code, 'ERR_NGROK_223')
})

test('a wrapped module and an owner by e-mail are accepted only in theirs', async () => {
  const { id } = await platform.admin.create('/edges/tcp')
  const { id: policyId } = await platform.admin.create('/ip_policies')
  const wrapped = { body: { id, module: { ip_policy_ids: [policyId] } } }
  const path = `/edges/tcp/${id}/ip_restriction`
  assert.equal((await send('PUT', path, wrapped, OURS)).body.error_code, 'ERR_UNKNOWN_FIELD')
  const set = await send('PUT', path, wrapped, THEIRS)
  assert.deepEqual([set.status, set.body.ip_policies[0].id], [200, policyId])
  const another = { body: { id: `edgtcp_${NOBODY}`, module: {} } }
  assert.equal((await send('PUT', path, another, THEIRS)).body.error_code, 'ERR_NGROK_215')
  const inside = { body: { id, module: { colour: 'red' } } }
  assert.equal((await send('PUT', path, inside, THEIRS)).body.error_code, 'ERR_NGROK_214')

  for (const owned of ['/api_keys', '/credentials']) {
    const email = { body: { owner_email: 'a@example.com' } }
    assert.equal((await send('POST', owned, email, OURS)).body.error_code, 'ERR_UNKNOWN_FIELD')
    const made = await send('POST', owned, email, THEIRS)
    assert.deepEqual([made.status, made.body.owner_id, 'owner_email' in made.body], [201, platform.adminId, false])
  }
})

test('only theirs shows `traffic_policy` beside `policy`, also in routes inside edges', async () => {
  const policy = { inbound: [{ name: 'no', actions: [{ type: 'deny' }] }] }
  const tcp = await platform.admin.create('/edges/tcp', { policy })
  const https = await platform.admin.create('/edges/https')
  const route = await platform.admin.create(`/edges/https/${https.id}/routes`, {
    match_type: 'path_prefix',
    match: '/',
    policy,
  })
  const places: [path: string, find: (body: Answer['body']) => Answer['body']][] = [
    [`/edges/tcp/${tcp.id}`, (body) => body],
    ['/edges/tcp', (body) => body.tcp_edges[0]],
    [`/edges/https/${https.id}/routes/${route.id}`, (body) => body],
    [`/edges/https/${https.id}`, (body) => body.routes[0]],
    ['/edges/https', (body) => body.https_edges[0].routes[0]],
  ]
  for (const [path, find] of places) {
    const theirs = find((await send('GET', path, {}, THEIRS)).body)
    const {
      traffic_policy: { enabled, value },
      ...rest
    } = theirs
    const ours = find((await send('GET', path, {}, OURS)).body)
    assert.deepEqual(rest, ours)
    assert.equal(enabled, true)
    assert.equal(JSON.parse(value).inbound[0].actions[0].type, 'deny')
  }
  const none = await send('POST', '/edges/tls', { body: {} }, THEIRS)
  assert.equal(none.body.traffic_policy, null)
})

test('a successful delete has an empty answer for all but the npm client', async () => {
  const agents: [headers: Record<string, string>, status: number, text: string][] = [
    [OURS, 204, ''],
    [THEIRS, 204, ''],
    [{ ...OURS, 'user-agent': 'ngrok-api-typescript/0.10.0/v24' }, 204, ''],
    [{ ...THEIRS, 'user-agent': 'ngrok-api-python/0.11.0/3.11' }, 204, ''],
    [{ ...THEIRS, 'user-agent': 'ngrok-api-typescript/0.10.0/v24' }, 200, '{}'],
  ]
  for (const [headers, status, text] of agents) {
    const { id } = await platform.admin.create('/ip_policies')
    const answer = await send('DELETE', `/ip_policies/${id}`, {}, headers)
    assert.deepEqual([answer.status, answer.text], [status, text])
    checkOperationHeaders(answer, headers['ngrok-version'] === undefined)
  }
})

test('a page of another site may read the operation id in both', async () => {
  const exposed = async (headers: Record<string, string>) => {
    const answer = await send('GET', '/api_keys', {}, { ...headers, origin: 'https://example.com' })
    return answer.headers.get('access-control-expose-headers')
  }
  assert.equal(await exposed(OURS), 'service-operation-id, service-in-force, retry-after')
  assert.equal(await exposed(THEIRS), 'service-operation-id, ngrok-operation-id, service-in-force, retry-after')
})

function checkOperationHeaders({ headers }: Answer, isOurs: boolean): void {
  const id = headers.get('service-operation-id')
  assert.match(id ?? '', /^op_\w{27}$/)
  assert.equal(headers.get('ngrok-operation-id'), isOurs ? null : id)
}

function send(method: string, path: string, sending: Sending, headers: Record<string, string>): Promise<Answer> {
  const all = { ...sending.headers, ...headers }
  return new ApiClient(platform.url, platform.apiKey).send(method, path, { ...sending, headers: all })
}
