/** A valid body for every stored resource and every module; creates what the body refers to. */
import { generateKeyPairSync, randomInt } from 'node:crypto'
import type { Resource } from '../../src/control-plane/resources/resource.ts'
import type { ApiClient, Json } from '../support/api-client.ts'
import { EXAMPLE_ROOT } from './certificates.ts'
import { IDP_METADATA } from './idp-metadata.ts'
import { unique, uniqueAddress, uniqueName } from './target.ts'
import { tlsPair } from './tls-pair.ts'

/** Creates one of `resource`, with its parent if it has one; returns the answer and its path. */
export async function createSample(
  api: ApiClient,
  resource: Resource,
  also: Readonly<Record<string, unknown>> = {},
): Promise<{ made: Json; path: string; collection: string }> {
  const collection = await collectionPath(api, resource)
  const made = await api.create(collection, { ...(await sampleBody(api, resource)), ...also })
  return { made, path: `${collection}/${made.id}`, collection }
}

/** Creates an edge or route without modules, for one to be set on it; returns its path. */
export async function createBareHost(api: ApiClient, resource: Resource): Promise<string> {
  const collection = await collectionPath(api, resource)
  const isRoute = resource.place === 'route'
  return `${collection}/${(await api.create(collection, isRoute ? { match_type: 'path_prefix', match: '/' } : {})).id}`
}

/** The path at which to create one of `resource`; creates the edge if the path contains one. */
export async function collectionPath(api: ApiClient, { path }: Pick<Resource, 'path'>): Promise<string> {
  if (!path.includes('{edge_id}')) return path
  return path.replace('{edge_id}', (await api.create('/edges/https', {})).id)
}

/** A body that creates one of `resource`, with as many fields set as possible. */
export async function sampleBody(api: ApiClient, { kind }: Pick<Resource, 'kind'>): Promise<Json> {
  const make = Object.hasOwn(bodies, kind) ? bodies[kind] : undefined
  if (!make) throw new Error(`there is no sample body for ${kind}; add one to samples.ts`)
  return make(api)
}

/** A body that sets the module `name`, in any place. */
export async function sampleModule(api: ApiClient, name: string): Promise<Json> {
  const make = Object.hasOwn(modules, name) ? modules[name] : undefined
  if (!make) throw new Error(`there is no sample of the module ${name}; add one to samples.ts`)
  return make(api)
}

export function sshPublicKey(): string {
  return generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'pem' }).toString()
}

type Make = (api: ApiClient) => Promise<Json>

const words = { description: 'a sample', metadata: '{"sample":true}' }

const bodies: Readonly<Record<string, Make>> = {
  api_key: async () => words,
  credential: async () => ({ ...words, acl: ['bind:*.example.com'] }),
  ssh_credential: async () => ({ ...words, acl: ['bind:team=*'], public_key: sshPublicKey() }),
  bot_user: async () => ({ name: unique('bot') }),
  user: async () => ({ name: unique('user'), role: 'member' }),
  tcp_edge: async (api) => ({ ...words, hostports: [uniqueAddress()], ...(await withModules(api, TCP_MODULES)) }),
  tls_edge: async (api) => ({ ...words, hostports: [uniqueName()], ...(await withModules(api, TLS_MODULES)) }),
  https_edge: async (api) => ({ ...words, hostports: [uniqueName()], ...(await withModules(api, HTTPS_MODULES)) }),
  https_edge_route: async (api) => ({
    ...words,
    match_type: 'path_prefix',
    match: '/',
    ...(await withModules(api, ROUTE_MODULES)),
  }),
  tunnel_group_backend: async () => ({ ...words, labels: { team: 'web' } }),
  http_response_backend: async () => ({ ...words, body: 'hello', headers: { 'x-a': 'b' }, status_code: 203 }),
  ip_policy: async () => words,
  ip_policy_rule: async (api) => ({
    ...words,
    cidr: `10.${randomInt(256)}.0.0/16`,
    action: 'allow',
    ip_policy_id: (await api.create('/ip_policies')).id,
  }),
  certificate_authority: async () => ({ ...words, ca_pem: EXAMPLE_ROOT }),
  weighted_backend: async (api) => ({
    ...words,
    backends: { [await tunnelGroup(api, 'a')]: 10, [await tunnelGroup(api, 'b')]: 0 },
  }),
  failover_backend: async (api) => ({ ...words, backends: [await tunnelGroup(api, 'a'), await tunnelGroup(api, 'b')] }),
  static_backend: async () => ({ ...words, address: 'db.example.com:5432', tls: { enabled: true } }),
  tls_certificate: async () => ({ ...words, ...tlsPair }),
  reserved_addr: async () => ({ ...words, region: 'us' }),
  reserved_domain: async (api) => ({
    ...words,
    domain: uniqueName().replace(':443', ''),
    region: 'us',
    certificate_id: await referred(api, '/tls_certificates', tlsPair),
  }),
  agent_ingress: async () => ({
    ...words,
    domain: uniqueName().replace(':443', ''),
    certificate_management_policy: { authority: 'letsencrypt', private_key_type: 'rsa' },
  }),
  ssh_certificate_authority: async () => ({ ...words, private_key_type: 'ecdsa', elliptic_curve: 'p384' }),
  ssh_user_certificate: async (api) => ({
    ...words,
    ...(await toSign(api)),
    principals: ['ada', 'root'],
    critical_options: { 'source-address': '10.0.0.0/8,::1' },
    extensions: { 'permit-pty': '' },
  }),
  ssh_host_certificate: async (api) => ({ ...words, ...(await toSign(api)), principals: ['ssh.example.com'] }),
  capture: async (api) => ({ edge_id: (await api.create('/edges/https')).id, bodies: true, duration: 60 }),
  // There can be only one of each type, so an older one is deleted.
  ip_restriction: async (api) => {
    for (const { id, type } of (await api.get('/ip_restrictions')).ip_restrictions) {
      if (type === 'dashboard') await api.delete(`/ip_restrictions/${id}`)
    }
    return { ...words, type: 'dashboard', ip_policy_ids: [await referred(api, '/ip_policies')] }
  },
}

const TCP_MODULES = ['backend', 'ip_restriction', 'policy']
const TLS_MODULES = [...TCP_MODULES, 'mutual_tls', 'tls_termination']
const HTTPS_MODULES = ['mutual_tls', 'tls_termination']
const ROUTE_MODULES = [
  ...TCP_MODULES,
  'circuit_breaker',
  'compression',
  'oauth',
  'oidc',
  'request_headers',
  'response_headers',
  'saml',
  'user_agent_filter',
  'webhook_verification',
  'websocket_tcp_converter',
]

const modules: Readonly<Record<string, Make>> = {
  backend: async (api) => ({ backend_id: await tunnelGroup(api, 'a') }),
  ip_restriction: async (api) => ({ ip_policy_ids: [await referred(api, '/ip_policies')] }),
  mutual_tls: async (api) => ({
    certificate_authority_ids: [await referred(api, '/certificate_authorities', { ca_pem: EXAMPLE_ROOT })],
  }),
  tls_termination: async () => ({ terminate_at: 'edge', min_version: '1.3' }),
  policy: async () => ({ inbound: [{ name: 'no', expressions: [], actions: [{ type: 'deny' }] }], outbound: [] }),
  oidc: async () => ({ issuer: 'https://id.example.com', client_id: 'app', client_secret: 'hush', scopes: ['email'] }),
  // Both are disabled, since a route can have only one login, and in the samples that is `oidc`.
  oauth: async () => ({
    enabled: false,
    provider: {
      github: {
        client_id: 'app',
        client_secret: 'hush',
        scopes: ['read:org'],
        email_addresses: ['ada@example.com'],
        email_domains: ['example.org'],
        teams: ['acme/web'],
        organizations: ['acme'],
      },
    },
    auth_check_interval: 300,
  }),
  saml: async () => ({ enabled: false, idp_metadata: IDP_METADATA, authorized_groups: ['web'], force_authn: true }),
  request_headers: async () => ({ add: { 'x-a': 'b' }, remove: ['x-c'] }),
  user_agent_filter: async () => ({ allow: ['^curl/'], deny: ['bot'] }),
  response_headers: async () => ({ add: { 'x-a': 'b' }, remove: ['x-c'] }),
  circuit_breaker: async () => ({ rolling_window: 20, error_threshold_percentage: 0.25 }),
  compression: async () => ({ enabled: false }),
  webhook_verification: async () => ({ provider: 'github', secret: 'hush' }),
  websocket_tcp_converter: async () => ({ enabled: false }),
  traffic_policy: async () => ({ value: 'inbound:\n- actions:\n  - type: deny\n' }),
}

/** What every SSH certificate needs. */
async function toSign(api: ApiClient): Promise<Json> {
  return {
    ssh_certificate_authority_id: await referred(api, '/ssh_certificate_authorities'),
    public_key: sshPublicKey(),
    valid_after: '2026-01-01T00:00:00Z',
    valid_until: '2036-01-01T00:00:00Z',
  }
}

function tunnelGroup(api: ApiClient, label: 'a' | 'b'): Promise<string> {
  return referred(api, '/backends/tunnel_group', { labels: { [label]: 'x' } })
}

/** What a client made for its samples to refer to, by path and body; all its samples share these. */
const made = new WeakMap<ApiClient, Map<string, Promise<Json>>>()

async function referred(api: ApiClient, path: string, body: Json = {}): Promise<string> {
  const ofClient = made.get(api) ?? new Map<string, Promise<Json>>()
  made.set(api, ofClient)
  const key = path + JSON.stringify(body)
  const one = ofClient.get(key) ?? api.create(path, body)
  ofClient.set(key, one)
  return (await one).id
}

async function withModules(api: ApiClient, names: readonly string[]): Promise<Json> {
  const all: Record<string, Json> = {}
  for (const name of names) all[name] = await sampleModule(api, name)
  return all
}
