/** The shape of each resource and module in answers: contract part 2, and resources beyond it. */

import type { Shape } from './shapes.ts'
import {
  anything,
  boolean,
  id,
  list,
  map,
  nothing,
  nullOr,
  object,
  oneOf,
  partial,
  ref,
  share,
  string,
  time,
  uint32,
  uri,
} from './shapes.ts'

const backendPrefixes = ['bkdtg_', 'bkdhr_', 'bkdwd_', 'bkdfo_', 'bkdsc_'] as const
const backendRef = ref('/backends/(tunnel_group|http_response|weighted|failover|static)', ...backendPrefixes)
const texts = { description: string, metadata: string }
const identity = (prefix: string, path: string) => ({
  id: id(prefix),
  uri: uri(`${path}/${prefix}[0-9A-Za-z]{27}`),
  created_at: time,
})

const managedCertificate = {
  certificate_management_policy: nullOr(
    object({ authority: oneOf('letsencrypt'), private_key_type: oneOf('ecdsa', 'rsa') }),
  ),
  certificate_management_status: nullOr(
    object({
      renews_at: nullOr(time),
      provisioning_job: nullOr(
        object({ error_code: nullOr(string), msg: string, started_at: nullOr(time), retries_at: nullOr(time) }),
      ),
    }),
  ),
}

/** Contract 2.8, 2.9 and 2.11. */
export const moduleShapes = {
  backend: object({ enabled: boolean, backend: backendRef }),
  ip_restriction: object({ enabled: boolean, ip_policies: list(ref('/ip_policies', 'ipp_')) }),
  mutual_tls: object({ enabled: boolean, certificate_authorities: list(ref('/certificate_authorities', 'ca_')) }),
  tls_termination: object({
    enabled: boolean,
    terminate_at: oneOf('edge', 'upstream'),
    min_version: nullOr(oneOf('1.0', '1.1', '1.2', '1.3')),
  }),
  policy: object({ enabled: boolean, inbound: nullOr(list(rule())), outbound: nullOr(list(rule())) }),
  oidc: object({
    enabled: boolean,
    options_passthrough: boolean,
    cookie_prefix: string,
    inactivity_timeout: uint32,
    maximum_duration: uint32,
    issuer: string,
    client_id: string,
    client_secret: string,
    scopes: list(string),
  }),
  oauth: object({
    enabled: boolean,
    provider: object({
      amazon: nullOr(provider()),
      facebook: nullOr(provider()),
      github: nullOr(provider('teams', 'organizations')),
      gitlab: nullOr(provider()),
      google: nullOr(provider('groups')),
      linkedin: nullOr(provider()),
      microsoft: nullOr(provider()),
      twitch: nullOr(provider()),
    }),
    options_passthrough: boolean,
    cookie_prefix: string,
    inactivity_timeout: uint32,
    maximum_duration: uint32,
    auth_check_interval: uint32,
  }),
  saml: object({
    enabled: boolean,
    options_passthrough: boolean,
    cookie_prefix: string,
    inactivity_timeout: uint32,
    maximum_duration: uint32,
    idp_metadata: string,
    idp_metadata_url: string,
    force_authn: boolean,
    allow_idp_initiated: boolean,
    authorized_groups: list(string),
    entity_id: string,
    assertion_consumer_service_url: string,
    single_logout_url: string,
    request_signing_certificate_pem: string,
    metadata_url: string,
    nameid_format: string,
  }),
  request_headers: object({ enabled: boolean, add: map(string), remove: list(string) }),
  user_agent_filter: object({ enabled: boolean, allow: list(string), deny: list(string) }),
  response_headers: object({ enabled: boolean, add: map(string), remove: list(string) }),
  circuit_breaker: object({
    enabled: boolean,
    tripped_duration: uint32,
    rolling_window: uint32,
    num_buckets: uint32,
    volume_threshold: uint32,
    error_threshold_percentage: share,
  }),
  compression: object({ enabled: boolean }),
  webhook_verification: object({ enabled: boolean, provider: string, secret: string }),
  websocket_tcp_converter: object({ enabled: boolean }),
} as const satisfies Record<string, Shape>

export type ModuleName = keyof typeof moduleShapes

/** The other spellings of modules, which no edge or route shows. */
export const spellingShapes = {
  traffic_policy: object({ enabled: boolean, value: string }),
} as const satisfies Record<string, Shape>

export type SpellingName = keyof typeof spellingShapes

function rule(): Shape {
  const action = object({ type: string, config: nullOr(map(anything)) })
  return object({ name: string, expressions: list(string), actions: list(action) })
}

/** The provider of an `oauth` module; some providers have more allowlists. */
function provider(...more: readonly string[]): Shape {
  const lists = ['scopes', 'email_addresses', 'email_domains', ...more].map((name) => [name, list(string)] as const)
  return object({ client_id: string, client_secret: string, ...Object.fromEntries(lists) })
}

const modules = (...names: readonly ModuleName[]) =>
  Object.fromEntries(names.map((name) => [name, nullOr(moduleShapes[name])]))

/** Contract 2.2: only the answer to the creation has the token. */
const key = (token: Shape) => object({ ...identity('ak_', '/api_keys'), ...texts, token, owner_id: owner })
const credential = (token: Shape) =>
  object({ ...identity('cr_', '/credentials'), ...texts, acl: list(string), token, owner_id: owner })
const owner = id('usr_', 'bot_')

const signed = {
  ssh_certificate_authority_id: id('sshca_'),
  public_key: string,
  key_type: oneOf('ed25519', 'ecdsa', 'rsa'),
  principals: list(string),
  valid_after: time,
  valid_until: time,
  certificate: string,
}

const routeShape = object({
  ...identity('edghtsrt_', '/edges/https/{edge_id}/routes'),
  ...texts,
  edge_id: id('edghts_'),
  match_type: oneOf('exact_path', 'path_prefix'),
  match: string,
  ...modules('backend', 'ip_restriction', 'user_agent_filter', 'oauth', 'oidc', 'saml'),
  ...modules('policy', 'request_headers'),
  ...modules('response_headers', 'circuit_breaker', 'compression', 'webhook_verification', 'websocket_tcp_converter'),
})

export const resourceShapes = {
  api_key: key(nothing),
  api_key_made: key(string),
  ssh_credential: object({
    ...identity('sshcr_', '/ssh_credentials'),
    ...texts,
    public_key: string,
    acl: list(string),
    owner_id: owner,
  }),
  /** Contract 2.4 */
  tunnel_session: object({
    id: id('ts_'),
    uri: uri('/tunnel_sessions/ts_[0-9A-Za-z]{27}'),
    agent_version: string,
    credential: ref('/credentials|/ssh_credentials', 'cr_', 'sshcr_'),
    ip: string,
    metadata: string,
    os: string,
    region: string,
    started_at: time,
    transport: oneOf('service/v2', 'ssh'),
  }),
  /** Contract 2.5, D19 */
  tunnel: partial(
    {
      id: id('tn_'),
      started_at: time,
      metadata: string,
      region: string,
      tunnel_session: ref('/tunnel_sessions', 'ts_'),
      forwards_to: string,
    },
    {
      public_url: string,
      proto: oneOf('http', 'https', 'tcp', 'tls'),
      endpoint: ref('/endpoints', 'ep_'),
      labels: map(string),
      backends: list(ref('/backends/tunnel_group', 'bkdtg_')),
    },
  ),
  node: object({
    id: id('nd_'),
    uri: uri('/nodes/nd_[0-9A-Za-z]{27}'),
    name: string,
    address: string,
    region: string,
    version: string,
    sessions: uint32,
    since: time,
    lease: nullOr(uint32),
  }),
  tcp_edge: object({
    ...identity('edgtcp_', '/edges/tcp'),
    ...texts,
    hostports: nullOr(list(string)),
    ...modules('backend', 'ip_restriction', 'policy'),
  }),
  tls_edge: object({
    ...identity('edgtls_', '/edges/tls'),
    ...texts,
    hostports: nullOr(list(string)),
    ...modules('backend', 'ip_restriction', 'mutual_tls', 'tls_termination', 'policy'),
  }),
  https_edge: object({
    ...identity('edghts_', '/edges/https'),
    ...texts,
    hostports: nullOr(list(string)),
    ...modules('mutual_tls', 'tls_termination'),
    routes: list(routeShape),
  }),
  https_edge_route: routeShape,
  ip_policy: object({ ...identity('ipp_', '/ip_policies'), ...texts }),
  ip_policy_rule: object({
    ...identity('ipr_', '/ip_policy_rules'),
    ...texts,
    cidr: string,
    action: oneOf('allow', 'deny'),
    ip_policy: ref('/ip_policies', 'ipp_'),
  }),
  tunnel_group_backend: object({
    ...identity('bkdtg_', '/backends/tunnel_group'),
    ...texts,
    labels: map(string),
    tunnels: list(ref('/tunnels', 'tn_')),
  }),
  http_response_backend: object({
    ...identity('bkdhr_', '/backends/http_response'),
    ...texts,
    body: string,
    headers: map(string),
    status_code: uint32,
  }),
  certificate_authority: object({
    ...identity('ca_', '/certificate_authorities'),
    ...texts,
    ca_pem: string,
    subject_common_name: string,
    not_before: time,
    not_after: time,
    key_usages: list(string),
    extended_key_usages: list(string),
  }),
  weighted_backend: object({ ...identity('bkdwd_', '/backends/weighted'), ...texts, backends: map(uint32) }),
  failover_backend: object({
    ...identity('bkdfo_', '/backends/failover'),
    ...texts,
    backends: list(id(...backendPrefixes)),
  }),
  static_backend: object({
    ...identity('bkdsc_', '/backends/static'),
    ...texts,
    address: string,
    tls: object({ enabled: boolean }),
  }),
  tls_certificate: object({
    ...identity('cert_', '/tls_certificates'),
    ...texts,
    certificate_pem: string,
    subject_common_name: string,
    subject_organization: string,
    subject_organizational_unit: string,
    subject_locality: string,
    subject_province: string,
    subject_country: string,
    subject_alternative_names: object({ dns_names: list(string), ips: list(string) }),
    issued_at: nothing,
    not_before: time,
    not_after: time,
    key_usages: list(string),
    extended_key_usages: list(string),
    private_key_type: oneOf('rsa', 'ecdsa', 'ed25519'),
    issuer_common_name: string,
    serial_number: string,
  }),
  reserved_addr: object({ ...identity('ra_', '/reserved_addrs'), ...texts, addr: string, region: string }),
  reserved_domain: object({
    ...identity('rd_', '/reserved_domains'),
    ...texts,
    domain: string,
    region: string,
    cname_target: nullOr(string),
    proven_at: nullOr(time),
    certificate: nullOr(ref('/tls_certificates', 'cert_')),
    ...managedCertificate,
    acme_challenge_cname_target: nullOr(string),
  }),
  agent_ingress: object({
    ...identity('agin_', '/agent_ingresses'),
    ...texts,
    domain: string,
    ns_targets: list(string),
    region_domains: list(string),
    ...managedCertificate,
  }),
  endpoint: partial(
    {
      id: id('ep_'),
      uri: uri('/endpoints/ep_[0-9A-Za-z]{27}'),
      region: string,
      created_at: time,
      updated_at: time,
      public_url: string,
      proto: oneOf('http', 'https', 'tcp', 'tls'),
      hostport: string,
      type: oneOf('ephemeral', 'edge'),
      name: string,
      description: string,
      metadata: string,
      bindings: list(string),
      pooling_enabled: boolean,
      traffic_policy: string,
      upstream_protocol: string,
      upstream_url: string,
    },
    {
      domain: ref('/reserved_domains', 'rd_'),
      tcp_addr: ref('/reserved_addrs', 'ra_'),
      tunnel: ref('/tunnels', 'tn_'),
      edge: ref('/edges/(tcp|tls|https)', 'edgtcp_', 'edgtls_', 'edghts_'),
    },
  ),
  application_user: object({
    ...identity('au_', '/app/users'),
    identity_provider: object({ name: string, url: string }),
    provider_user_id: string,
    username: string,
    email: string,
    name: string,
    last_active: time,
    last_login: time,
  }),
  application_session: object({
    ...identity('as_', '/app/sessions'),
    public_url: string,
    browser_session: object({
      user_agent: object({
        raw: string,
        browser_name: string,
        browser_version: string,
        device_type: string,
        os_name: string,
        os_version: string,
      }),
      ip_address: string,
      location: nothing,
    }),
    application_user: ref('/app/users', 'au_'),
    last_active: time,
    expires_at: time,
    endpoint: nullOr(ref('/endpoints', 'ep_')),
    edge: nullOr(ref('/edges/https', 'edghts_')),
    route: nullOr(ref('/edges/https/edghts_[0-9A-Za-z]{27}/routes', 'edghtsrt_')),
  }),
  ip_restriction: object({
    ...identity('ipx_', '/ip_restrictions'),
    ...texts,
    enforced: boolean,
    type: oneOf('api', 'dashboard', 'agent', 'endpoints'),
    ip_policies: list(ref('/ip_policies', 'ipp_')),
  }),
  ssh_certificate_authority: object({
    ...identity('sshca_', '/ssh_certificate_authorities'),
    ...texts,
    public_key: string,
    key_type: oneOf('ed25519', 'ecdsa', 'rsa'),
  }),
  ssh_user_certificate: object({
    ...identity('sucrt_', '/ssh_user_certificates'),
    ...texts,
    ...signed,
    critical_options: map(string),
    extensions: map(string),
  }),
  ssh_host_certificate: object({ ...identity('shcrt_', '/ssh_host_certificates'), ...texts, ...signed }),
  // Only traffic creates these; test/e2e/exchanges.test.ts and captures.test.ts check them field by field.
  exchange: anything,
  capture: anything,
  traffic: object({
    interval: uint32,
    nodes: list(string),
    missing: list(string),
    points: list(anything),
  }),
  broken_edges: object({ broken_edges: list(anything) }),
  explanation: object({
    steps: list(
      object({
        module: string,
        phase: string,
        outcome: string,
        rules: list(anything),
        meter: nullOr(object({ used: uint32, total: uint32 })),
      }),
    ),
    outcome: object({
      verdict: oneOf('passes', 'answers', 'refuses', 'closes', 'depends'),
      text: string,
      status_code: nullOr(uint32),
      error_code: nullOr(string),
      headers: map(list(string)),
      body: nullOr(string),
      route_id: nullOr(string),
      upstream: nullOr(object({ method: string, url: string, headers: map(list(string)) })),
    }),
  }),
  credential: credential(nothing),
  credential_made: credential(string),
  bot_user: object({ ...identity('bot_', '/bot_users'), name: string, active: boolean }),
  service_user: object({ ...identity('bot_', '/service_users'), name: string, active: boolean }),
  user: object({
    ...identity('usr_', '/users'),
    name: string,
    role: oneOf('admin', 'member'),
    active: boolean,
  }),
} as const satisfies Record<string, Shape>

/** Contract 2.1: a page of a list. */
export function pageOf(listKey: string, path: string, item: Shape): Shape {
  return object({ [listKey]: list(item), uri: uri(path), next_page_uri: nullOr(string) })
}
