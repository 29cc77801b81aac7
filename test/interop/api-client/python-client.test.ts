/** What the official Python client sends and needs (0.11 to 0.17, measured), as plain requests. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { resourceOf } from '../../../src/control-plane/resources/index.ts'
import { createSample, sampleBody } from '../../conformance/samples.ts'
import { type Answer, ApiClient, type Json, type Sending } from '../../support/api-client.ts'
import { type Platform, startPlatform } from '../../support/platform.ts'

const HEADERS = { 'service-version': '', 'ngrok-version': '2', 'user-agent': 'ngrok-api-python/0.11.0/3.11.2' }
const NOBODY = '1'.repeat(27)

let platform: Platform
before(async () => {
  platform = await startPlatform()
})
after(() => platform.stop())

/** The keys that it reads with `[…]`: reading the attribute of a missing one is a `KeyError`. */
const documented: Readonly<Record<string, string>> = {
  api_key: 'id uri description metadata created_at token owner_id',
  credential: 'id uri created_at description metadata token acl owner_id',
  ssh_credential: 'id uri created_at description metadata public_key acl owner_id',
  bot_user: 'id uri name active created_at',
  tcp_edge: 'id description metadata created_at uri hostports backend ip_restriction policy',
  tls_edge: 'id description metadata created_at uri hostports backend ip_restriction mutual_tls tls_termination policy',
  https_edge: 'id description metadata created_at uri hostports mutual_tls tls_termination routes',
  https_edge_route:
    'edge_id id created_at match_type match uri description metadata backend ip_restriction circuit_breaker compression request_headers response_headers webhook_verification oauth oidc saml websocket_tcp_converter user_agent_filter policy',
  tunnel_group_backend: 'id uri created_at description metadata labels tunnels',
  http_response_backend: 'id uri created_at description metadata body headers status_code',
  weighted_backend: 'id uri created_at description metadata backends',
  failover_backend: 'id uri created_at description metadata backends',
  static_backend: 'id uri created_at description metadata address tls',
  ip_policy: 'id uri created_at description metadata',
  ip_policy_rule: 'id uri created_at description metadata cidr ip_policy action',
  ip_restriction: 'id uri created_at description metadata enforced type ip_policies',
  certificate_authority:
    'id uri created_at description metadata ca_pem subject_common_name not_before not_after key_usages extended_key_usages',
  tls_certificate:
    'id uri created_at description metadata certificate_pem subject_common_name subject_alternative_names issued_at not_before not_after key_usages extended_key_usages private_key_type issuer_common_name serial_number subject_organization subject_organizational_unit subject_locality subject_province subject_country',
  ssh_certificate_authority: 'id uri created_at description metadata public_key key_type',
  ssh_host_certificate:
    'id uri created_at description metadata public_key key_type ssh_certificate_authority_id principals valid_after valid_until certificate',
  ssh_user_certificate:
    'id uri created_at description metadata public_key key_type ssh_certificate_authority_id principals critical_options extensions valid_after valid_until certificate',
  agent_ingress:
    'id uri created_at description metadata domain ns_targets region_domains certificate_management_policy certificate_management_status',
  reserved_addr: 'id uri created_at description metadata addr region',
  reserved_domain:
    'id uri created_at description metadata domain region cname_target certificate certificate_management_policy certificate_management_status acme_challenge_cname_target',
}
for (const [kind, keys] of Object.entries(documented)) {
  test(`${kind} has every documented key, and strings are never null`, async () => {
    const { path } = await createSample(platform.admin, resourceOf(kind))
    const { body } = await send('GET', path)
    assert.deepEqual(
      keys.split(' ').filter((key) => !Object.hasOwn(body, key)),
      [],
    )
    for (const word of ['description', 'metadata']) assert.notEqual(body[word], null)
  })
}

const creates: [path: string, body: object, shown: object][] = [
  ['/api_keys', { description: '', metadata: '' }, { description: '', metadata: '' }],
  ['/credentials', { description: '', metadata: '', acl: [] }, { acl: [] }],
  ['/edges/tcp', { description: '', metadata: '', hostports: [] }, { hostports: null, backend: null, policy: null }],
  ['/edges/tls', { description: '', metadata: '', hostports: [] }, { hostports: null, tls_termination: null }],
  ['/edges/https', { description: '', metadata: '' }, { hostports: null, routes: [] }],
  ['/backends/http_response', { description: '', metadata: '', body: '', headers: {} }, { status_code: 200 }],
  [
    '/ssh_certificate_authorities',
    { description: '', metadata: '', private_key_type: '', elliptic_curve: '', key_size: 0 },
    { key_type: 'ed25519' },
  ],
  // From 0.17 on.
  ['/reserved_domains', { domain: 'py.example.com', region: '', resolves_to: [] }, { domain: 'py.example.com' }],
  ['/reserved_addrs', { description: '', metadata: '', region: '' }, { description: '' }],
  [
    '/agent_ingresses',
    { domain: 'connect.example.com', description: '', metadata: '', certificate_management_policy: null },
    { region_domains: ['connect.example.com'], ns_targets: [], certificate_management_status: null },
  ],
  // What the Ruby client sends.
  ['/reserved_domains', { name: 'rb.example.com', domain: '', certificate_id: '' }, { domain: 'rb.example.com' }],
  ['/api_keys', { description: '', owner_id: '' }, { description: '' }],
]
for (const [path, body, shown] of creates) {
  test(`POST ${path} with all its defaults, ${JSON.stringify(body)}`, async () => {
    const { status, body: made, text } = await send('POST', path, { body })
    assert.equal(status, 201, text)
    for (const [field, value] of Object.entries(shown)) assert.deepEqual(made[field], value, field)
    const unchanged = await send('PATCH', `${path}/${made.id}`, { body: {} })
    assert.equal(unchanged.status, 200)
    assert.deepEqual(unchanged.body, 'token' in made ? { ...made, token: null } : made)
  })
}

test('a certificate with all its defaults permits what the documentation says, and is valid for a day', async () => {
  const { id } = await platform.admin.create('/ssh_certificate_authorities')
  const { public_key } = await sampleBody(platform.admin, { kind: 'ssh_credential' })
  const named = { ssh_certificate_authority_id: id, public_key, principals: ['ada'] }
  const unnamed = {
    description: '',
    metadata: '',
    critical_options: {},
    extensions: {},
    valid_after: null,
    valid_until: '',
  }
  const { status, body: made, text } = await send('POST', '/ssh_user_certificates', { body: { ...named, ...unnamed } })
  assert.equal(status, 201, text)
  assert.deepEqual(made.extensions, { 'permit-pty': '', 'permit-user-rc': '' })
  assert.equal(Date.parse(made.valid_until) - Date.parse(made.valid_after), 24 * 60 * 60 * 1000)
})

/** What its updates send for fields that the caller omitted. */
const unnamed: [kind: string, body: object][] = [
  ['tunnel_group_backend', { labels: {} }],
  ['weighted_backend', { backends: {} }],
  ['failover_backend', { backends: [] }],
  ['static_backend', { address: '' }],
  ['ip_restriction', { ip_policy_ids: [] }],
  ['https_edge_route', { match_type: '', match: '' }],
]
for (const [kind, body] of unnamed) {
  test(`an update of a ${kind} with ${JSON.stringify(body)} changes nothing, in this dialect only`, async () => {
    const { path } = await createSample(platform.admin, resourceOf(kind))
    const before = (await send('GET', path)).body
    const after = await send('PATCH', path, { body: { ...body, description: 'changed' } })
    assert.equal(after.status, 200, after.text)
    assert.deepEqual(after.body, { ...before, description: 'changed' })
    const ours = await platform.admin.send('PATCH', path, { body })
    assert.equal(ours.status, 400)
  })
}

test('an endpoint has the parts of its address that newer clients read', async () => {
  const { id } = await platform.admin.create('/edges/https', {
    description: 'a site',
    hostports: ['parts.example.com:443'],
  })
  const { body } = await send('GET', '/endpoints')
  const endpoint = body.endpoints.find(({ edge }: Json) => edge?.id === id)
  const { url, scheme, host, port, name, description } = endpoint
  assert.deepEqual(
    { url, scheme, host, port, name, description },
    {
      url: 'https://parts.example.com',
      scheme: 'https',
      host: 'parts.example.com',
      port: 443,
      name: '',
      description: 'a site',
    },
  )
  assert.deepEqual((await send('GET', `/endpoints/${endpoint.id}`)).body, endpoint)
  const ours = await platform.admin.get(`/endpoints/${endpoint.id}`)
  assert.deepEqual([ours.url, ours.host, ours.port, ours.scheme], [undefined, undefined, undefined, undefined])
})

test('commands come without a body and content type, and the client can read a 404', async () => {
  for (const command of ['restart', 'stop', 'update']) {
    const { status, body } = await send('POST', `/tunnel_sessions/ts_${NOBODY}/${command}`)
    assert.deepEqual([status, body.status_code, body.error_code], [404, 404, 'ERR_NGROK_222'])
    assert.equal(typeof body.msg, 'string')
    assert.equal(typeof body.details, 'object')
  }
})

test('the next page is an absolute URL, requested unchanged', async () => {
  for (let i = 0; i < 5; i += 1) await platform.admin.create('/ip_policies')
  const all = (await platform.admin.get('/ip_policies')).ip_policies.map(({ id }: Json) => id)
  const ids: string[] = []
  let uri = `${platform.url}/ip_policies?limit=2`
  while (uri) {
    const { body } = await send('GET', uri)
    ids.push(...body.ip_policies.map(({ id }: Json) => id))
    uri = body.next_page_uri
    assert.ok(uri === null || uri.startsWith(`${platform.url}/`))
  }
  assert.deepEqual(ids, all)
})

test('the path may begin with two slashes, which a base URL with a trailing slash causes', async () => {
  assert.equal((await send('GET', `${platform.url}//api_keys`)).status, 200)
})

function send(method: string, path: string, sending: Sending = {}): Promise<Answer> {
  return new ApiClient(platform.url, platform.apiKey).send(method, path, { ...sending, headers: HEADERS })
}
