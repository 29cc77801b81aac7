/** Every operation: its body, its status and the shape of its answer. The rows of contract part 4 come first. */
import { randomInt } from 'node:crypto'
import { EXAMPLE_ROOT } from './certificates.ts'
import { IDP_METADATA } from './idp-metadata.ts'
import {
  type ModuleCase,
  moduleCases,
  modulePath,
  type Refs,
  type SpellingCase,
  spellingCases,
} from './module-table.ts'
import { moduleShapes, pageOf, resourceShapes as shapes, spellingShapes } from './resource-shapes.ts'
import type { Shape } from './shapes.ts'
import { newPublicKey, openSshLine } from './ssh-keys.ts'
import { unique, uniqueAddress, uniqueName } from './target.ts'
import { tlsPair } from './tls-pair.ts'
import { type KindName, TABLE_RESTRICTION } from './world.ts'

export interface Row {
  readonly status: 200 | 201 | 204
  /** Null when the answer has no body. */
  readonly shape: Shape | null
  /** The kind of resource that `{id}` names; null when only an agent or a visitor can create one. */
  readonly kind: KindName | null
  /** A body with every field that the operation takes. */
  readonly body?: (given: Given) => Readonly<Record<string, unknown>>
  /** The file that tests the successful case, if that needs traffic. */
  readonly testedBy?: string
  /** The module to set first, so that it can be read or deleted. */
  readonly module?: ModuleCase | SpellingCase
}

export interface Given {
  readonly refs: Refs
  readonly ownerId: string
}

/** Contract part 4, verbatim. */
export const contractRows: readonly string[] = [
  // contract 4.1
  'POST /api_keys',
  'GET /api_keys',
  'GET /api_keys/{id}',
  'PATCH /api_keys/{id}',
  'DELETE /api_keys/{id}',
  // contract 4.2
  'POST /ssh_credentials',
  'GET /ssh_credentials',
  'GET /ssh_credentials/{id}',
  'PATCH /ssh_credentials/{id}',
  'DELETE /ssh_credentials/{id}',
  // contract 4.3
  'GET /tunnel_sessions',
  'GET /tunnel_sessions/{id}',
  'POST /tunnel_sessions/{id}/restart',
  'POST /tunnel_sessions/{id}/stop',
  'POST /tunnel_sessions/{id}/update',
  // contract 4.4
  'GET /tunnels',
  'GET /tunnels/{id}',
  // contract 4.5
  'POST /edges/tcp',
  'GET /edges/tcp',
  'GET /edges/tcp/{id}',
  'PATCH /edges/tcp/{id}',
  // contract 4.6
  'POST /edges/tls',
  'GET /edges/tls',
  'GET /edges/tls/{id}',
  'PATCH /edges/tls/{id}',
  'DELETE /edges/tls/{id}',
  // contract 4.7: three operations a row
  ...[
    '/edges/tcp/{id}/ip_restriction',
    '/edges/tls/{id}/tls_termination',
    '/edges/https/{id}/tls_termination',
    '/edges/https/{edge_id}/routes/{id}/oidc',
    '/edges/https/{edge_id}/routes/{id}/request_headers',
    '/edges/https/{edge_id}/routes/{id}/user_agent_filter',
  ].flatMap((path) => [`PUT ${path}`, `GET ${path}`, `DELETE ${path}`]),
]

const texts = () => ({ description: unique('about'), metadata: unique('{"a":1}') })
const publicKey = () => openSshLine(newPublicKey('ed25519'))
const acl = ['bind:*.example.com', 'bind:tcp.example.com:20001', 'bind:app=*', 'bind:*=blue', '*']
const policy = {
  inbound: [{ name: 'n', expressions: ['true'], actions: [{ type: 'deny', config: {} }] }],
}
const backend = ({ refs }: Given) => ({ enabled: true, backend_id: refs.tunnelGroup.id })
const restriction = ({ refs }: Given) => ({ enabled: true, ip_policy_ids: [refs.ipPolicies[0].id] })
const mutual = ({ refs }: Given) => ({ enabled: true, certificate_authority_ids: [refs.authorities[0].id] })

const certified = ({ sshAuthority }: Refs) => ({
  ssh_certificate_authority_id: sshAuthority.id,
  public_key: publicKey(),
  principals: ['one', 'two'],
  valid_after: '2026-01-02T03:04:05Z',
  valid_until: '2027-01-02T03:04:05Z',
})

const tcpEdge = (given: Given) => ({
  ...texts(),
  hostports: [uniqueAddress()],
  backend: backend(given),
  ip_restriction: restriction(given),
  policy,
})
const tlsEdge = (given: Given) => ({
  ...texts(),
  hostports: [uniqueName()],
  backend: backend(given),
  ip_restriction: restriction(given),
  mutual_tls: mutual(given),
  tls_termination: { enabled: true, terminate_at: 'edge', min_version: '1.3' },
  policy,
})
const httpsEdge = (given: Given) => ({
  ...texts(),
  hostports: [uniqueName()],
  mutual_tls: mutual(given),
  tls_termination: { enabled: true, min_version: '1.3' },
})
const route = (given: Given) => ({
  ...texts(),
  match_type: 'exact_path',
  match: `/${unique('path')}`,
  backend: backend(given),
  ip_restriction: restriction(given),
  policy,
  oidc: { issuer: 'https://id.example.com', client_id: 'shop', client_secret: 'keep-this' },
  oauth: { enabled: false, provider: { google: { client_id: 'shop', groups: ['web@example.com'] } } },
  saml: { enabled: false, idp_metadata: IDP_METADATA },
  request_headers: { add: { a: 'b' }, remove: ['c'] },
  user_agent_filter: { allow: ['^a'], deny: ['b$'] },
  response_headers: { add: { a: 'b' }, remove: ['c'] },
  circuit_breaker: { enabled: false, tripped_duration: 1, rolling_window: 2, num_buckets: 3, volume_threshold: 4 },
  compression: { enabled: true },
  webhook_verification: { provider: 'github', secret: 'keep-this' },
  websocket_tcp_converter: { enabled: false },
})
const policyOfDomain = { authority: 'letsencrypt', private_key_type: 'rsa' }
const httpResponse = () => ({ ...texts(), body: 'gone', headers: { 'X-Case': 'Kept' }, status_code: 410 })

export const rows: Readonly<Record<string, Row>> = {
  'POST /api_keys': {
    kind: 'api_key',
    status: 201,
    shape: shapes.api_key_made,
    body: ({ ownerId }) => ({ ...texts(), owner_id: ownerId }),
  },
  ...reads('api_key', '/api_keys', 'keys', shapes.api_key),
  'PATCH /api_keys/{id}': { kind: 'api_key', status: 200, shape: shapes.api_key, body: texts },
  'DELETE /api_keys/{id}': { kind: 'api_key', status: 204, shape: null },

  'POST /ssh_credentials': {
    kind: 'ssh_credential',
    status: 201,
    shape: shapes.ssh_credential,
    body: ({ ownerId }) => ({ ...texts(), acl, public_key: publicKey(), owner_id: ownerId }),
  },
  ...reads('ssh_credential', '/ssh_credentials', 'ssh_credentials', shapes.ssh_credential),
  'PATCH /ssh_credentials/{id}': {
    kind: 'ssh_credential',
    status: 200,
    shape: shapes.ssh_credential,
    body: () => ({ ...texts(), acl }),
  },
  'DELETE /ssh_credentials/{id}': { kind: 'ssh_credential', status: 204, shape: null },

  ...reads(null, '/tunnel_sessions', 'tunnel_sessions', shapes.tunnel_session),
  'POST /tunnel_sessions/{id}/restart': { kind: null, status: 204, shape: null, body: () => ({}) },
  'POST /tunnel_sessions/{id}/stop': { kind: null, status: 204, shape: null, body: () => ({}) },
  'POST /tunnel_sessions/{id}/update': { kind: null, status: 204, shape: null, body: () => ({}) },

  ...reads(null, '/tunnels', 'tunnels', shapes.tunnel),

  'POST /edges/tcp': { kind: 'tcp_edge', status: 201, shape: shapes.tcp_edge, body: tcpEdge },
  ...reads('tcp_edge', '/edges/tcp', 'tcp_edges', shapes.tcp_edge),
  'PATCH /edges/tcp/{id}': { kind: 'tcp_edge', status: 200, shape: shapes.tcp_edge, body: tcpEdge },

  'POST /edges/tls': { kind: 'tls_edge', status: 201, shape: shapes.tls_edge, body: tlsEdge },
  ...reads('tls_edge', '/edges/tls', 'tls_edges', shapes.tls_edge),
  'PATCH /edges/tls/{id}': { kind: 'tls_edge', status: 200, shape: shapes.tls_edge, body: tlsEdge },
  'DELETE /edges/tls/{id}': { kind: 'tls_edge', status: 204, shape: null },

  ...Object.assign({}, ...[...moduleCases, ...spellingCases].map(moduleRows)),

  // Beyond the contract from here on.
  'DELETE /edges/tcp/{id}': { kind: 'tcp_edge', status: 204, shape: null },

  'POST /edges/https': { kind: 'https_edge', status: 201, shape: shapes.https_edge, body: httpsEdge },
  ...reads('https_edge', '/edges/https', 'https_edges', shapes.https_edge),
  'PATCH /edges/https/{id}': { kind: 'https_edge', status: 200, shape: shapes.https_edge, body: httpsEdge },
  'DELETE /edges/https/{id}': { kind: 'https_edge', status: 204, shape: null },

  'POST /edges/https/{edge_id}/routes': {
    kind: 'https_edge_route',
    status: 201,
    shape: shapes.https_edge_route,
    body: route,
  },
  'GET /edges/https/{edge_id}/routes/{id}': { kind: 'https_edge_route', status: 200, shape: shapes.https_edge_route },
  'PATCH /edges/https/{edge_id}/routes/{id}': {
    kind: 'https_edge_route',
    status: 200,
    shape: shapes.https_edge_route,
    body: route,
  },
  'DELETE /edges/https/{edge_id}/routes/{id}': { kind: 'https_edge_route', status: 204, shape: null },

  ...plain('ip_policy', '/ip_policies', 'ip_policies', { create: texts, update: texts }),
  ...plain('ip_policy_rule', '/ip_policy_rules', 'ip_policy_rules', {
    create: ({ refs }) => ({
      ...texts(),
      cidr: `2001:db8:${randomInt(0x1000, 0x10000).toString(16)}::/48`,
      action: 'deny',
      ip_policy_id: refs.ipPolicies[1].id,
    }),
    update: () => ({ ...texts(), cidr: '203.0.113.0/24' }),
  }),
  ...plain('tunnel_group_backend', '/backends/tunnel_group', 'backends', {
    create: () => ({ ...texts(), labels: { app: 'shop', 'Case.Kept': 'Yes' } }),
    update: () => ({ ...texts(), labels: { app: 'other' } }),
  }),
  ...plain('http_response_backend', '/backends/http_response', 'backends', {
    create: httpResponse,
    update: httpResponse,
  }),
  ...plain('certificate_authority', '/certificate_authorities', 'certificate_authorities', {
    create: () => ({ ...texts(), ca_pem: EXAMPLE_ROOT }),
    update: texts,
  }),
  ...plain('credential', '/credentials', 'credentials', {
    create: ({ ownerId }) => ({ ...texts(), acl, owner_id: ownerId }),
    update: () => ({ ...texts(), acl }),
    made: shapes.credential_made,
  }),
  ...plain('weighted_backend', '/backends/weighted', 'backends', {
    create: ({ refs }) => ({ ...texts(), backends: { [refs.tunnelGroup.id]: 10_000, [refs.httpResponse.id]: 0 } }),
    update: ({ refs }) => ({ ...texts(), backends: { [refs.httpResponse.id]: 1 } }),
  }),
  ...plain('failover_backend', '/backends/failover', 'backends', {
    create: ({ refs }) => ({ ...texts(), backends: [refs.tunnelGroup.id, refs.httpResponse.id] }),
    update: ({ refs }) => ({ ...texts(), backends: [refs.httpResponse.id, refs.tunnelGroup.id] }),
  }),
  ...plain('static_backend', '/backends/static', 'backends', {
    create: () => ({ ...texts(), address: 'db.example.com:5432', tls: { enabled: true } }),
    update: () => ({ ...texts(), address: '[2001:db8::1]:80', tls: { enabled: true } }),
  }),
  ...plain('tls_certificate', '/tls_certificates', 'tls_certificates', {
    create: () => ({ ...texts(), ...tlsPair }),
    update: () => ({ ...texts(), ...tlsPair }),
  }),
  'POST /tls_certificates/{id}/renew': { kind: null, status: 204, shape: null },
  ...plain('reserved_addr', '/reserved_addrs', 'reserved_addrs', {
    create: () => ({ ...texts(), region: 'us' }),
    update: texts,
  }),
  ...plain('reserved_domain', '/reserved_domains', 'reserved_domains', {
    create: () => ({
      ...texts(),
      domain: `${unique('domain')}.example.com`,
      region: 'us',
      certificate_management_policy: policyOfDomain,
    }),
    update: () => ({ ...texts(), certificate_management_policy: policyOfDomain }),
  }),
  'POST /reserved_domains/{id}/retry': { kind: null, status: 204, shape: null },
  'DELETE /reserved_domains/{id}/certificate': { kind: 'reserved_domain', status: 204, shape: null },
  'DELETE /reserved_domains/{id}/certificate_management_policy': { kind: 'reserved_domain', status: 204, shape: null },
  ...plain('agent_ingress', '/agent_ingresses', 'ingresses', {
    create: () => ({
      ...texts(),
      domain: `${unique('connect')}.example.com`,
      certificate_management_policy: policyOfDomain,
    }),
    update: () => ({ ...texts(), certificate_management_policy: policyOfDomain }),
  }),
  'POST /agent_ingresses/{id}/retry': { kind: null, status: 204, shape: null },
  'DELETE /agent_ingresses/{id}/certificate_management_policy': { kind: 'agent_ingress', status: 204, shape: null },
  ...reads(null, '/nodes', 'nodes', shapes.node),
  ...reads(null, '/endpoints', 'endpoints', shapes.endpoint),
  'POST /policy/explain': {
    kind: null,
    status: 200,
    shape: shapes.explanation,
    body: () => ({ policy: {}, request: {} }),
  },
  ...reads(null, '/exchanges', 'exchanges', shapes.exchange),
  'GET /exchanges/stream': { kind: null, status: 200, shape: null, testedBy: 'test/e2e/exchange-stream.test.ts' },
  'POST /exchanges/{id}/replay': { kind: null, status: 201, shape: shapes.exchange, body: () => ({}) },
  'GET /exchanges/{id}/har': { kind: null, status: 200, shape: null },
  'GET /exchanges/{id}/curl': { kind: null, status: 200, shape: null },
  ...reads(null, '/captures', 'captures', shapes.capture),
  'POST /captures': { kind: null, status: 201, shape: shapes.capture, testedBy: 'test/e2e/captures.test.ts' },
  'DELETE /captures/{id}': { kind: null, status: 204, shape: null },
  'GET /traffic/minutes': { kind: null, status: 200, shape: shapes.traffic },
  'GET /traffic/day': { kind: null, status: 200, shape: shapes.traffic },
  'GET /broken_edges': { kind: null, status: 200, shape: shapes.broken_edges },
  ...reads(null, '/app/users', 'application_users', shapes.application_user),
  'DELETE /app/users/{id}': { kind: null, status: 204, shape: null },
  ...reads(null, '/app/sessions', 'application_sessions', shapes.application_session),
  'DELETE /app/sessions/{id}': { kind: null, status: 204, shape: null },
  ...plain('ip_restriction', '/ip_restrictions', 'ip_restrictions', {
    create: ({ refs }) => ({
      ...texts(),
      enforced: true,
      type: TABLE_RESTRICTION,
      ip_policy_ids: refs.ipPolicies.map(({ id }) => id),
    }),
    // Not enforced: one of type `api` would lock out this test.
    update: ({ refs }) => ({ ...texts(), enforced: false, ip_policy_ids: [refs.ipPolicies[1].id] }),
  }),
  ...plain('ssh_certificate_authority', '/ssh_certificate_authorities', 'ssh_certificate_authorities', {
    create: () => ({ ...texts(), private_key_type: 'ecdsa', elliptic_curve: 'p521' }),
    update: texts,
  }),
  ...plain('ssh_user_certificate', '/ssh_user_certificates', 'ssh_user_certificates', {
    create: ({ refs }) => ({
      ...texts(),
      ...certified(refs),
      critical_options: { 'force-command': 'true', 'source-address': '192.0.2.1,2001:db8::/32' },
      extensions: { 'permit-port-forwarding': '', 'login@example.com': 'ada' },
    }),
    update: texts,
  }),
  ...plain('ssh_host_certificate', '/ssh_host_certificates', 'ssh_host_certificates', {
    create: ({ refs }) => ({ ...texts(), ...certified(refs) }),
    update: texts,
  }),
  ...plain('bot_user', '/bot_users', 'bot_users', {
    create: () => ({ name: unique('bot'), active: false }),
    update: () => ({ name: unique('bot'), active: false }),
  }),
  ...plain('service_user', '/service_users', 'service_users', {
    create: () => ({ name: unique('service'), active: false }),
    update: () => ({ name: unique('service'), active: false }),
  }),
  ...plain('user', '/users', 'users', {
    create: () => ({ name: unique('user'), role: 'admin', active: false }),
    update: () => ({ name: unique('user'), role: 'member', active: false }),
  }),
}

function reads(kind: KindName | null, path: string, listKey: string, shape: Shape): Record<string, Row> {
  return {
    [`GET ${path}`]: { kind, status: 200, shape: pageOf(listKey, path, shape) },
    [`GET ${path}/{id}`]: { kind, status: 200, shape },
  }
}

/** The five operations of an ordinary resource. */
function plain(
  kind: KindName,
  path: string,
  listKey: string,
  { create, update, made = shapes[kind] }: Record<'create' | 'update', NonNullable<Row['body']>> & { made?: Shape },
): Record<string, Row> {
  return {
    [`POST ${path}`]: { kind, status: 201, shape: made, body: create },
    ...reads(kind, path, listKey, shapes[kind]),
    [`PATCH ${path}/{id}`]: { kind, status: 200, shape: shapes[kind], body: update },
    [`DELETE ${path}/{id}`]: { kind, status: 204, shape: null },
  }
}

function moduleRows(module: ModuleCase | SpellingCase): Record<string, Row> {
  const path = modulePath(module)
  const shape = { ...moduleShapes, ...spellingShapes }[module.module]
  const kind = module.host
  return {
    [`PUT ${path}`]: { kind, status: 200, shape, module, body: ({ refs }) => module.full(refs).body },
    [`GET ${path}`]: { kind, status: 200, shape, module },
    [`DELETE ${path}`]: { kind, status: 204, shape: null, module },
  }
}
