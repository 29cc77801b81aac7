/** Every module in every place, from contract 4.7 and beyond, with the smallest and the fullest body of a PUT. */
import { IDP_METADATA } from './idp-metadata.ts'
import type { ModuleName, SpellingName } from './resource-shapes.ts'
import { type KindName, kinds, type World } from './world.ts'

export type HostKind = Extract<KindName, 'tcp_edge' | 'tls_edge' | 'https_edge' | 'https_edge_route'>

export interface ModuleCase {
  readonly host: HostKind
  readonly module: ModuleName
  /** The smallest body, and the answer to it. */
  readonly least: Example
  /** Every field, none at its default. */
  readonly full: Example
}

/** Another spelling of a module. */
export interface SpellingCase extends Omit<ModuleCase, 'module'> {
  readonly module: SpellingName
}

/** Makes a body and the answer to it, from resources that it may refer to. */
export type Example = (refs: Refs) => { readonly body: Fields; readonly answer: Fields }
type Fields = Readonly<Record<string, unknown>>

export interface Ref {
  readonly id: string
  readonly uri: string
}

export interface Refs {
  readonly ipPolicies: readonly [Ref, Ref]
  readonly authorities: readonly [Ref, Ref]
  readonly tunnelGroup: Ref
  readonly httpResponse: Ref
  readonly sshAuthority: Ref
  /** The certificate of the server's key that signs requests to identity providers. */
  readonly requestCertificate: string
}

/** The path of a module's three operations, as the contract writes it. */
export function modulePath({ host, module }: Pick<ModuleCase | SpellingCase, 'host' | 'module'>): string {
  return `${kinds[host].path}/{id}/${module}`
}

export async function makeRefs(world: World): Promise<Refs> {
  const ref = async (kind: KindName) => (await world.make(kind)).ref
  const route = await world.make('https_edge_route', { saml: { enabled: false } })
  return {
    ipPolicies: [await ref('ip_policy'), await ref('ip_policy')],
    authorities: [await ref('certificate_authority'), await ref('certificate_authority')],
    tunnelGroup: await ref('tunnel_group_backend'),
    httpResponse: await ref('http_response_backend'),
    sshAuthority: await ref('ssh_certificate_authority'),
    requestCertificate: String(route.body.saml.request_signing_certificate_pem),
  }
}

const backend: Pick<ModuleCase, 'module' | 'least' | 'full'> = {
  module: 'backend',
  least: ({ tunnelGroup }) => ({
    body: { backend_id: tunnelGroup.id },
    answer: { enabled: true, backend: tunnelGroup },
  }),
  full: ({ tunnelGroup }) => ({
    body: { enabled: false, backend_id: tunnelGroup.id },
    answer: { enabled: false, backend: tunnelGroup },
  }),
}

const ipRestriction: typeof backend = {
  module: 'ip_restriction',
  least: ({ ipPolicies: [one] }) => ({
    body: { ip_policy_ids: [one.id] },
    answer: { enabled: true, ip_policies: [one] },
  }),
  full: ({ ipPolicies: [one, two] }) => ({
    body: { enabled: false, ip_policy_ids: [two.id, one.id] },
    answer: { enabled: false, ip_policies: [two, one] },
  }),
}

const mutualTls: typeof backend = {
  module: 'mutual_tls',
  least: ({ authorities: [one] }) => ({
    body: { certificate_authority_ids: [one.id] },
    answer: { enabled: true, certificate_authorities: [one] },
  }),
  full: ({ authorities: [one, two] }) => ({
    body: { enabled: false, certificate_authority_ids: [two.id, one.id] },
    answer: { enabled: false, certificate_authorities: [two, one] },
  }),
}

const noPolicy: Example = () => ({ body: {}, answer: { enabled: true, inbound: null, outbound: null } })

/** The policy of an edge has rules for incoming connections only. */
const edgePolicy: typeof backend = {
  module: 'policy',
  least: noPolicy,
  full: () => {
    const rule = {
      name: 'office only',
      expressions: ["conn.client_ip == '192.0.2.1'", 'true'],
      actions: [
        { type: 'log', config: { metadata: { a: 'b' } } },
        { type: 'deny', config: {} },
      ],
    }
    return {
      body: { enabled: false, inbound: [rule], outbound: [] },
      answer: { enabled: false, inbound: [rule], outbound: [] },
    }
  },
}

const routePolicy: typeof backend = {
  module: 'policy',
  least: noPolicy,
  full: () => {
    const value = {
      enabled: false,
      inbound: [
        {
          name: 'no deletes',
          expressions: ["req.method == 'DELETE'"],
          actions: [{ type: 'deny', config: { status_code: 405 } }],
        },
      ],
      outbound: [
        {
          name: 'mark',
          expressions: ['res.status_code == 200'],
          actions: [{ type: 'add-headers', config: { headers: { 'X-Mark': 'yes' } } }],
        },
      ],
    }
    return { body: value, answer: value }
  },
}

const same =
  (value: Fields): Example =>
  () => ({ body: value, answer: value })

const onOff: Pick<ModuleCase, 'least' | 'full'> = {
  least: () => ({ body: {}, answer: { enabled: true } }),
  full: same({ enabled: false }),
}

/** The providers of `oauth`, none of them named. */
const noProvider = {
  amazon: null,
  facebook: null,
  github: null,
  gitlab: null,
  google: null,
  linkedin: null,
  microsoft: null,
  twitch: null,
}

/** The URLs that `saml` shows on an edge without a name. */
const namelessAddresses = {
  entity_id: '',
  assertion_consumer_service_url: '',
  single_logout_url: '',
  metadata_url: '',
}

/** Contract 4.7 first, row by row; then the same modules elsewhere, and the others. */
export const moduleCases: readonly ModuleCase[] = [
  { host: 'tcp_edge', ...ipRestriction },
  {
    host: 'tls_edge',
    module: 'tls_termination',
    // D31, D32
    least: () => ({ body: {}, answer: { enabled: true, terminate_at: 'edge', min_version: null } }),
    full: same({ enabled: false, terminate_at: 'edge', min_version: '1.3' }),
  },
  {
    host: 'https_edge',
    module: 'tls_termination',
    // D34
    least: () => ({ body: {}, answer: { enabled: true, terminate_at: 'edge', min_version: null } }),
    full: () => ({
      body: { enabled: false, min_version: '1.3' },
      answer: { enabled: false, terminate_at: 'edge', min_version: '1.3' },
    }),
  },
  {
    host: 'https_edge_route',
    module: 'oidc',
    least: () => {
      const body = { issuer: 'https://id.example.com', client_id: 'shop', client_secret: 'keep-this-1' }
      const defaults = {
        enabled: true,
        options_passthrough: false,
        cookie_prefix: '',
        inactivity_timeout: 0,
        maximum_duration: 0,
        scopes: [],
      }
      return { body, answer: { ...defaults, ...body } }
    },
    full: same({
      enabled: false,
      options_passthrough: true,
      cookie_prefix: 'shop.',
      inactivity_timeout: 4_294_967_295,
      maximum_duration: 4_294_967_295,
      issuer: 'https://id.example.com/realm',
      client_id: 'shop',
      client_secret: 'keep-this-2',
      scopes: ['openid', 'email'],
    }),
  },
  {
    host: 'https_edge_route',
    module: 'request_headers',
    least: () => ({ body: {}, answer: { enabled: true, add: {}, remove: [] } }),
    full: same({ enabled: false, add: { 'X-From': 'edge', host: 'inner.example.com' }, remove: ['X-Debug', 'Host'] }),
  },
  {
    host: 'https_edge_route',
    module: 'user_agent_filter',
    least: () => ({ body: {}, answer: { enabled: true, allow: [], deny: [] } }),
    full: same({ enabled: false, allow: ['^curl/', '(?i)firefox'], deny: ['.*'] }),
  },

  { host: 'tcp_edge', ...backend },
  { host: 'tcp_edge', ...edgePolicy },
  { host: 'tls_edge', ...backend },
  { host: 'tls_edge', ...ipRestriction },
  { host: 'tls_edge', ...mutualTls },
  { host: 'tls_edge', ...edgePolicy },
  { host: 'https_edge', ...mutualTls },
  {
    host: 'https_edge_route',
    ...backend,
    full: ({ httpResponse }) => ({
      body: { enabled: false, backend_id: httpResponse.id },
      answer: { enabled: false, backend: httpResponse },
    }),
  },
  { host: 'https_edge_route', ...ipRestriction },
  { host: 'https_edge_route', ...routePolicy },
  {
    host: 'https_edge_route',
    module: 'response_headers',
    least: () => ({ body: {}, answer: { enabled: true, add: {}, remove: [] } }),
    full: same({ enabled: false, add: { 'X-Frame-Options': 'DENY' }, remove: ['Server', 'Host'] }),
  },
  {
    host: 'https_edge_route',
    module: 'circuit_breaker',
    least: () => ({
      body: {},
      answer: {
        enabled: true,
        tripped_duration: 10,
        rolling_window: 10,
        num_buckets: 10,
        volume_threshold: 20,
        error_threshold_percentage: 0.5,
      },
    }),
    full: same({
      enabled: false,
      tripped_duration: 4_294_967_295,
      rolling_window: 1,
      num_buckets: 128,
      volume_threshold: 0,
      error_threshold_percentage: 0.125,
    }),
  },
  {
    host: 'https_edge_route',
    module: 'oauth',
    least: () => {
      const application = { client_id: 'shop', client_secret: 'keep-this-1' }
      const lists = { scopes: [], email_addresses: [], email_domains: [] }
      const answer = {
        enabled: true,
        provider: { ...noProvider, gitlab: { ...application, ...lists } },
        options_passthrough: false,
        cookie_prefix: '',
        inactivity_timeout: 0,
        maximum_duration: 0,
        auth_check_interval: 0,
      }
      return { body: { provider: { gitlab: application } }, answer }
    },
    full: same({
      enabled: false,
      provider: {
        ...noProvider,
        github: {
          client_id: 'shop',
          client_secret: 'keep-this-2',
          scopes: ['read:user', 'read:org'],
          email_addresses: ['ada@example.com', 'bob@example.com'],
          email_domains: ['example.org'],
          teams: ['acme/web', '42'],
          organizations: ['Acme'],
        },
      },
      options_passthrough: true,
      cookie_prefix: 'shop.',
      inactivity_timeout: 4_294_967_295,
      maximum_duration: 4_294_967_295,
      auth_check_interval: 4_294_967_295,
    }),
  },
  {
    host: 'https_edge_route',
    module: 'saml',
    least: ({ requestCertificate }) => {
      const body = { idp_metadata: IDP_METADATA }
      const defaults = {
        enabled: true,
        options_passthrough: false,
        cookie_prefix: '',
        inactivity_timeout: 0,
        maximum_duration: 0,
        idp_metadata_url: '',
        force_authn: false,
        allow_idp_initiated: false,
        authorized_groups: [],
        nameid_format: 'urn:oasis:names:tc:SAML:2.0:nameid-format:persistent',
      }
      const given = { ...namelessAddresses, request_signing_certificate_pem: requestCertificate }
      return { body, answer: { ...defaults, ...body, ...given } }
    },
    full: ({ requestCertificate }) => {
      const body = {
        enabled: false,
        options_passthrough: true,
        cookie_prefix: 'shop.',
        inactivity_timeout: 4_294_967_295,
        maximum_duration: 4_294_967_295,
        idp_metadata: `\ufeff${IDP_METADATA}\r\n`,
        idp_metadata_url: '',
        force_authn: true,
        allow_idp_initiated: true,
        authorized_groups: ['cn=web,dc=example', 'Büro'],
        nameid_format: 'urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress',
      }
      const given = { ...namelessAddresses, request_signing_certificate_pem: requestCertificate }
      return { body, answer: { ...body, ...given } }
    },
  },
  { host: 'https_edge_route', module: 'compression', ...onOff },
  { host: 'https_edge_route', module: 'websocket_tcp_converter', ...onOff },
  {
    host: 'https_edge_route',
    module: 'webhook_verification',
    least: () => {
      const body = { provider: 'github', secret: 'keep-this-1' }
      return { body, answer: { enabled: true, ...body } }
    },
    full: same({ enabled: false, provider: 'stripe', secret: 'keep-this-2' }),
  },
]

const trafficPolicy = (first: string): Omit<SpellingCase, 'host'> => ({
  module: 'traffic_policy',
  least: () => ({ body: { value: '{}' }, answer: { enabled: true, value: '{}' } }),
  full: same({ enabled: false, value: `# ours\n${first}:\n- actions:\n  - {type: deny}\n` }),
})

export const spellingCases: readonly SpellingCase[] = [
  { host: 'tcp_edge', ...trafficPolicy('on_tcp_connect') },
  { host: 'tls_edge', ...trafficPolicy('on_tcp_connect') },
  { host: 'https_edge_route', ...trafficPolicy('on_http_request') },
]
