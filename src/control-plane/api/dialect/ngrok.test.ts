import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ApiRoute, routeTable } from '../routes.ts'
import type { Dialect } from './api-dialect.ts'
import { dialectOf, ngrok } from './ngrok.ts'
import { own } from './own.ts'

const routes = routeTable()
const NPM = 'ngrok-api-typescript/0.10.0/v24.0.0'
const PYTHON = 'ngrok-api-python/0.11.0/3.11.2'
const GO = 'ngrok-api-go//go1.22'

const chosen: [what: string, headers: Record<string, string>, dialect: Dialect][] = [
  ['no version', {}, own],
  ['our version', { 'service-version': '2' }, own],
  ['the vendor’s version', { 'ngrok-version': '2' }, ngrok],
  ['an unknown version of the vendor’s', { 'ngrok-version': '9' }, ngrok],
  ['an empty version of the vendor’s', { 'ngrok-version': '' }, ngrok],
  ['both', { 'service-version': '2', 'ngrok-version': '2' }, ngrok],
  ['a client of the vendor’s that sends our version', { 'service-version': '2', 'user-agent': NPM }, own],
]
for (const [what, headers, dialect] of chosen) {
  test(`${what}: ${dialect === own ? 'our own' : 'the vendor’s'} dialect`, () => {
    assert.equal(dialectOf({ headers }), dialect)
  })
}

const bodies: [what: string, operation: string, sent: object, read: object][] = [
  ['a wrapped module', 'put_tcp_edge_backend', { module: { backend_id: 'x' } }, { backend_id: 'x' }],
  ['a module that is not wrapped', 'put_tcp_edge_backend', { backend_id: 'x' }, { backend_id: 'x' }],
  ['a module of null', 'put_tcp_edge_backend', { module: null }, {}],
  ['a wrapper with more in it', 'put_tcp_edge_backend', { module: {}, x: 1 }, { module: {}, x: 1 }],
  ['`module` of something else', 'update_tcp_edge', { module: { a: 1 } }, { module: { a: 1 } }],
  ['an owner by e-mail', 'create_api_key', { owner_email: 'a@b', metadata: 'm' }, { metadata: 'm' }],
  ['an e-mail for a resource without owner', 'create_ip_policy', { owner_email: 'a@b' }, { owner_email: 'a@b' }],
  ['empty labels in an update', 'update_tunnel_group_backend', { labels: {}, metadata: '' }, { metadata: '' }],
  ['empty policies in an update', 'update_ip_restriction', { ip_policy_ids: [] }, {}],
  [
    'an empty match in an update',
    'update_https_edge_route',
    { match: '', match_type: '', description: '' },
    { description: '' },
  ],
  ['an empty unknown field', 'create_reserved_domain', { resolves_to: [], x: '', y: {}, z: null }, {}],
  ['an unknown field', 'create_reserved_domain', { resolves_to: ['us'] }, { resolves_to: ['us'] }],
  ['null for a known field', 'update_tcp_edge', { policy: null }, { policy: null }],
  ['empty labels in a create', 'create_tunnel_group_backend', { labels: {} }, { labels: {} }],
  ['no hostports in an update', 'update_tcp_edge', { hostports: [] }, { hostports: [] }],
  ['an e-mail in an update', 'update_credential', { owner_email: 'a@b' }, { owner_email: 'a@b' }],
  ['an empty domain beside a name', 'create_reserved_domain', { domain: '', name: 'a.b', region: '' }, { name: 'a.b' }],
  ['an empty owner', 'create_api_key', { owner_id: '', description: '' }, {}],
  ['an empty text that is required', 'create_ip_policy_rule', { cidr: '', metadata: '' }, { cidr: '' }],
  ['an empty text in a list', 'create_credential', { acl: [''] }, { acl: [''] }],
  ['an empty text in a map', 'create_http_response_backend', { headers: { 'x-a': '' } }, { headers: { 'x-a': '' } }],
  ['an empty text in an update', 'update_ip_policy', { description: '' }, { description: '' }],
  ['an empty certificate in an update', 'update_reserved_domain', { certificate_id: '' }, { certificate_id: '' }],
  ['an empty word in an update', 'update_user', { role: '', name: '' }, {}],
  [
    'empty words of a policy in an update',
    'update_reserved_domain',
    { certificate_management_policy: { authority: '', private_key_type: 'rsa' } },
    { certificate_management_policy: { private_key_type: 'rsa' } },
  ],
  ['empty words of a module', 'put_tls_edge_tls_termination', { terminate_at: '', min_version: '' }, {}],
  [
    'empty words of a wrapped module',
    'put_https_edge_route_oidc',
    { module: { issuer: 'https://a.b', cookie_prefix: '' } },
    { issuer: 'https://a.b' },
  ],
  [
    'empty words of a module of a new edge',
    'create_tls_edge',
    { tls_termination: { terminate_at: '', min_version: '1.3' } },
    { tls_termination: { min_version: '1.3' } },
  ],
  ['an empty text for a module', 'create_tcp_edge', { ip_restriction: '' }, { ip_restriction: '' }],
  ['an empty text for a module in an update', 'update_tcp_edge', { ip_restriction: '' }, { ip_restriction: '' }],
  ['an empty text for a list', 'put_tcp_edge_ip_restriction', { ip_policy_ids: '' }, { ip_policy_ids: '' }],
  ['an empty text for yes or no', 'put_tcp_edge_ip_restriction', { enabled: '' }, { enabled: '' }],
  ['an action of a policy', 'create_ip_policy', { action: 'deny', metadata: 'm' }, { metadata: 'm' }],
  ['an action of a rule', 'create_ip_policy_rule', { action: 'deny' }, { action: 'deny' }],
  [
    'endpoint configurations of a domain',
    'create_reserved_domain',
    { domain: 'a.b', http_endpoint_configuration_id: 'ec_1', https_endpoint_configuration_id: 'ec_2' },
    { domain: 'a.b' },
  ],
  ['an endpoint configuration of an address', 'update_reserved_addr', { endpoint_configuration_id: 'ec_1' }, {}],
  [
    'an endpoint configuration of an edge',
    'update_tcp_edge',
    { endpoint_configuration_id: 'e' },
    { endpoint_configuration_id: 'e' },
  ],
  [
    'a region of a new domain',
    'create_reserved_domain',
    { domain: 'a.b', region: 'eu' },
    { domain: 'a.b', region: 'eu' },
  ],
  ['a region of a domain in an update', 'update_reserved_domain', { region: 'eu', metadata: 'm' }, { metadata: 'm' }],
]
for (const [what, operation, sent, read] of bodies) {
  test(`${what} is read as ${JSON.stringify(read)}, and by our own dialect as it is`, () => {
    assert.deepEqual(ngrok.readBody(route(operation), { ...sent }), read)
    assert.deepEqual(own.readBody(route(operation), { ...sent }), sent)
  })
}

const empties: [operation: string, userAgent: string, answer: object | undefined][] = [
  ['delete_api_key', NPM, {}],
  ['delete_tcp_edge_backend', NPM, {}],
  ['stop_tunnel_session', NPM, {}],
  ['delete_api_key', PYTHON, undefined],
  ['stop_tunnel_session', PYTHON, {}],
  ['update_tunnel_session', PYTHON, {}],
  ['delete_api_key', GO, undefined],
  ['stop_tunnel_session', GO, undefined],
  ['stop_tunnel_session', '', undefined],
  ['stop_tunnel_session', `curl ${NPM}`, undefined],
]
for (const [operation, userAgent, answer] of empties) {
  test(`an empty answer to ${operation} for ${userAgent || 'an unnamed client'} is ${answer ? '{}' : 'empty'}`, () => {
    assert.deepEqual(ngrok.answer(route(operation), undefined, userAgent), answer)
    assert.equal(own.answer(route(operation), undefined, userAgent), undefined)
  })
}

const answers: [operation: string, given: object, spelled: object][] = [
  ['get_tunnel_session', { transport: 'service/v2' }, { transport: 'ngrok/v2' }],
  ['get_tunnel_session', { transport: 'ssh' }, { transport: 'ssh' }],
  [
    'list_tunnel_sessions',
    { tunnel_sessions: [{ transport: 'service/v2' }] },
    { tunnel_sessions: [{ transport: 'ngrok/v2' }] },
  ],
  ['get_ip_policy', { id: 'a' }, { id: 'a' }],
  ['create_reserved_domain', { id: 'rd_1', region: 'local' }, { id: 'rd_1', region: '' }],
  [
    'list_reserved_domains',
    { reserved_domains: [{ region: 'us' }], next_page_uri: null },
    { reserved_domains: [{ region: '' }], next_page_uri: null },
  ],
  ['get_reserved_addr', { region: 'local' }, { region: 'local' }],
  [
    'get_endpoint',
    { public_url: 'https://a.b', proto: 'https', hostport: 'a.b:443', name: 'web' },
    {
      public_url: 'https://a.b',
      proto: 'https',
      hostport: 'a.b:443',
      name: 'web',
      url: 'https://a.b',
      scheme: 'https',
      host: 'a.b',
      port: 443,
    },
  ],
  [
    'list_endpoints',
    { endpoints: [{ public_url: 'tcp://a.b:20001', proto: 'tcp', hostport: 'a.b:20001' }] },
    {
      endpoints: [
        {
          public_url: 'tcp://a.b:20001',
          proto: 'tcp',
          hostport: 'a.b:20001',
          url: 'tcp://a.b:20001',
          scheme: 'tcp',
          host: 'a.b',
          port: 20001,
        },
      ],
    },
  ],
  ['list_service_users', { service_users: [{ id: 'bot_1' }] }, { service_users: [{ id: 'bot_1' }] }],
]
for (const [operation, given, spelled] of answers) {
  test(`${operation} with ${JSON.stringify(given)} is spelled their way, and by our own dialect as it is`, () => {
    assert.deepEqual(ngrok.answer(route(operation), given, GO), spelled)
    assert.equal(own.answer(route(operation), given, GO), given)
  })
}

function route(operation: string): ApiRoute {
  return routes.find((each) => each.operation === operation) ?? assert.fail(`no operation ${operation}`)
}
