/** The flags of a tunnel, for the agent and the SSH gateway: each sets a key of `postern-agent.yml`. */
import type { TunnelKind } from './endpoint-options.ts'

/** Who reads flags: the agent from its command line, the SSH gateway from the command of a client. */
export type FlagTaker = 'agent' | 'gateway'

export interface TunnelFlag {
  /** Without dashes. */
  readonly name: string
  /** The placeholder of the value in the help; a flag without one is a switch. */
  readonly takes?: string
  readonly about: string
  /** Added to `about` in the agent's help. */
  readonly agentAdds?: string
  /** The commands that have it. */
  readonly for: readonly TunnelKind[]
  /** The key it sets. */
  readonly path: readonly [string] | readonly [string, string]
  /** Whether it may be given more than once: for both takers, or for one. */
  readonly isMany?: boolean | FlagTaker
  readonly isNumber?: boolean
  /** Whether the value may name a file, for takers that can read files. */
  readonly isFile?: boolean
  /** The only taker that has it. */
  readonly only?: FlagTaker
}

const all: readonly TunnelKind[] = ['http', 'tcp', 'tls']
const each: readonly TunnelKind[] = [...all, 'labeled']
const named: readonly TunnelKind[] = ['http', 'tls']
const http: readonly TunnelKind[] = ['http']
const tls: readonly TunnelKind[] = ['tls']

export const tunnelFlags: readonly TunnelFlag[] = [
  { name: 'url', takes: 'url', about: 'the full public URL to request', for: all, path: ['url'] },
  { name: 'domain', takes: 'name', about: 'the domain name to request', for: named, path: ['domain'] },
  { name: 'subdomain', takes: 'name', about: "a name under the server's domain", for: named, path: ['subdomain'] },
  { name: 'hostname', takes: 'name', about: 'same as --domain', for: named, path: ['hostname'] },
  {
    name: 'remote-addr',
    takes: 'host:port',
    about: 'the public address to request',
    for: ['tcp'],
    path: ['remote_addr'],
  },
  {
    name: 'scheme',
    takes: 'scheme',
    about: 'http or https (default: https)',
    agentAdds: ', or both',
    for: http,
    path: ['schemes'],
    isMany: 'agent',
  },
  {
    name: 'label',
    takes: 'name=value',
    about: 'serve edges that match these labels, instead of a public address',
    for: each,
    path: ['labels'],
    isMany: true,
  },
  { name: 'metadata', takes: 'text', about: 'shown in the API', for: each, path: ['metadata'] },
  {
    name: 'name',
    takes: 'text',
    about: 'name of the tunnel, shown in the API',
    for: all,
    path: ['name'],
    only: 'gateway',
  },
  {
    name: 'description',
    takes: 'text',
    about: 'what the tunnel is for, shown in the API',
    for: all,
    path: ['description'],
    only: 'gateway',
  },
  {
    name: 'host-header',
    takes: 'name',
    about: 'Host header to send to the service',
    agentAdds: ', or `rewrite`',
    for: http,
    path: ['host_header'],
  },
  {
    name: 'basic-auth',
    takes: 'user:password',
    about: 'require this user name and password',
    agentAdds: '; set it in the file to keep it out of process lists',
    for: http,
    path: ['basic_auth'],
    isMany: true,
  },
  {
    name: 'oauth',
    takes: 'provider',
    about: 'visitors log in with this provider, such as github or google',
    for: http,
    path: ['oauth', 'provider'],
  },
  {
    name: 'oauth-client-id',
    takes: 'id',
    about: 'client id of your application at the provider',
    for: http,
    path: ['oauth', 'client_id'],
  },
  {
    name: 'oauth-client-secret',
    takes: 'secret',
    about: 'client secret of that application',
    agentAdds: '; set POSTERN_OAUTH_CLIENT_SECRET instead to keep it out of process lists',
    for: http,
    path: ['oauth', 'client_secret'],
  },
  {
    name: 'oauth-allow-email',
    takes: 'address',
    about: 'email address of a user to let in',
    for: http,
    path: ['oauth', 'allow_emails'],
    isMany: true,
  },
  {
    name: 'oauth-allow-domain',
    takes: 'domain',
    about: 'email domain whose users to let in',
    for: http,
    path: ['oauth', 'allow_domains'],
    isMany: true,
  },
  {
    name: 'oauth-scope',
    takes: 'scope',
    about: 'further scope to request from the provider',
    for: http,
    path: ['oauth', 'scopes'],
    isMany: true,
  },
  {
    name: 'oidc',
    takes: 'issuer',
    about: 'visitors log in with the OpenID Connect provider at this URL',
    for: http,
    path: ['oidc', 'issuer_url'],
  },
  {
    name: 'oidc-client-id',
    takes: 'id',
    about: 'client id of your application at the issuer',
    for: http,
    path: ['oidc', 'client_id'],
  },
  {
    name: 'oidc-client-secret',
    takes: 'secret',
    about: 'client secret of that application',
    agentAdds: '; set POSTERN_OIDC_CLIENT_SECRET instead to keep it out of process lists',
    for: http,
    path: ['oidc', 'client_secret'],
  },
  {
    name: 'oidc-allow-email',
    takes: 'address',
    about: 'email address of a user to let in',
    for: http,
    path: ['oidc', 'allow_emails'],
    isMany: true,
  },
  {
    name: 'oidc-allow-domain',
    takes: 'domain',
    about: 'email domain whose users to let in',
    for: http,
    path: ['oidc', 'allow_domains'],
    isMany: true,
  },
  {
    name: 'oidc-scope',
    takes: 'scope',
    about: 'further scope to request from the issuer',
    for: http,
    path: ['oidc', 'scopes'],
    isMany: true,
  },
  {
    name: 'cidr-allow',
    takes: 'cidr',
    about: 'network to allow visitors from',
    for: all,
    path: ['ip_restriction', 'allow'],
    isMany: true,
  },
  {
    name: 'cidr-deny',
    takes: 'cidr',
    about: 'network to deny visitors from, even if --cidr-allow includes it',
    for: all,
    path: ['ip_restriction', 'deny'],
    isMany: true,
  },
  {
    name: 'mutual-tls-cas',
    takes: 'pem',
    isFile: true,
    about: 'require client certificates signed by these CAs',
    for: named,
    path: ['mutual_tls'],
  },
  {
    name: 'terminate-at',
    takes: 'place',
    about: 'where TLS is terminated: edge or upstream',
    for: tls,
    path: ['terminate_at'],
  },
  {
    name: 'crt',
    takes: 'pem',
    isFile: true,
    about: 'certificate for TLS terminated at the edge',
    for: tls,
    path: ['crt'],
  },
  { name: 'key', takes: 'pem', isFile: true, about: 'private key of that certificate', for: tls, path: ['key'] },
  {
    name: 'request-header-add',
    takes: 'name:value',
    about: 'header to add to requests',
    for: http,
    path: ['request_headers', 'add'],
    isMany: true,
  },
  {
    name: 'request-header-remove',
    takes: 'name',
    about: 'header to remove from requests',
    for: http,
    path: ['request_headers', 'remove'],
    isMany: true,
  },
  {
    name: 'response-header-add',
    takes: 'name:value',
    about: 'header to add to responses',
    for: http,
    path: ['response_headers', 'add'],
    isMany: true,
  },
  {
    name: 'response-header-remove',
    takes: 'name',
    about: 'header to remove from responses',
    for: http,
    path: ['response_headers', 'remove'],
    isMany: true,
  },
  { name: 'compression', about: 'compress responses', for: http, path: ['compression'] },
  {
    name: 'circuit-breaker',
    takes: 'share',
    about: 'share of failed responses, 0 to 1, at which visitors are rejected for a while',
    for: http,
    path: ['circuit_breaker'],
    isNumber: true,
  },
  {
    name: 'verify-webhook',
    takes: 'provider',
    about: 'accept only signed webhooks of this provider',
    for: http,
    path: ['webhook_verification', 'provider'],
  },
  {
    name: 'verify-webhook-secret',
    takes: 'secret',
    about: 'secret that signs the webhooks',
    for: http,
    path: ['webhook_verification', 'secret'],
  },
  {
    name: 'ua-filter-allow',
    takes: 'regex',
    about: 'user agents to allow',
    for: http,
    path: ['user_agent_filter', 'allow'],
    isMany: true,
  },
  {
    name: 'ua-filter-deny',
    takes: 'regex',
    about: 'user agents to deny',
    for: http,
    path: ['user_agent_filter', 'deny'],
    isMany: true,
  },
  {
    name: 'traffic-policy-file',
    takes: 'policy',
    isFile: true,
    about: 'a traffic policy',
    for: all,
    path: ['traffic_policy'],
    only: 'agent',
  },
  {
    name: 'traffic-policy',
    takes: 'policy',
    about: 'a traffic policy, as JSON or YAML',
    for: all,
    path: ['traffic_policy'],
    only: 'gateway',
  },
  {
    name: 'websocket-tcp-converter',
    about: 'turn WebSockets into plain TCP',
    for: http,
    path: ['websocket_tcp_converter'],
  },
  {
    name: 'proxy-proto',
    takes: 'version',
    about: 'version of the PROXY header that the service expects: 1 or 2',
    for: all,
    path: ['proxy_proto'],
  },
  {
    name: 'app-protocol',
    takes: 'name',
    about: 'HTTP version of the service: http1 or http2',
    for: ['http', 'labeled'],
    path: ['app_protocol'],
  },
  {
    name: 'upstream-verify',
    about: 'check the certificate of an https or tls service',
    for: all,
    path: ['upstream_tls', 'verify'],
    only: 'agent',
  },
  {
    name: 'upstream-ca',
    takes: 'pem',
    isFile: true,
    about: 'CAs to trust for that certificate; implies --upstream-verify',
    for: all,
    path: ['upstream_tls', 'ca'],
    only: 'agent',
  },
  {
    name: 'upstream-server-name',
    takes: 'name',
    about: 'name to send to the service in the TLS handshake',
    for: all,
    path: ['upstream_tls', 'server_name'],
    only: 'agent',
  },
  {
    name: 'pooling',
    about: 'share the address with other tunnels that also set --pooling',
    for: all,
    path: ['pooling'],
    only: 'agent',
  },
]
