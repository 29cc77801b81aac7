/** The flags of a tunnel, one table for all who take them: each is a key of `postern-agent.yml` in another spelling. */
import type { TunnelKind } from './endpoint-options.ts'

/** Who reads flags: the agent from its command line, the SSH gateway from the command of a client. */
export type FlagTaker = 'agent' | 'gateway'

export interface TunnelFlag {
  /** Without dashes. */
  readonly name: string
  /** What stands for the value in the help; without it the flag is a switch. */
  readonly takes?: string
  readonly about: string
  /** What is true for the agent alone. */
  readonly agentAdds?: string
  /** The commands that have it. */
  readonly for: readonly TunnelKind[]
  /** The key it stands for. */
  readonly path: readonly [string] | readonly [string, string]
  /** May be given more than once, by all or by one of those who take it. */
  readonly isMany?: boolean | FlagTaker
  readonly isNumber?: boolean
  /** Names a file that holds the value, where there are files to read. */
  readonly isFile?: boolean
  /** Known, so that it can be answered, and not offered. */
  readonly isHidden?: boolean
  /** Who has it, where the other cannot. */
  readonly only?: FlagTaker
}

const all: readonly TunnelKind[] = ['http', 'tcp', 'tls']
const each: readonly TunnelKind[] = [...all, 'labeled']
const named: readonly TunnelKind[] = ['http', 'tls']
const http: readonly TunnelKind[] = ['http']
const tls: readonly TunnelKind[] = ['tls']

export const tunnelFlags: readonly TunnelFlag[] = [
  { name: 'url', takes: 'url', about: 'the whole address to ask for', for: all, path: ['url'] },
  { name: 'domain', takes: 'name', about: 'the name to ask for', for: named, path: ['domain'] },
  { name: 'subdomain', takes: 'name', about: 'a name under the domain of the server', for: named, path: ['subdomain'] },
  { name: 'hostname', takes: 'name', about: 'same as --domain', for: named, path: ['hostname'] },
  { name: 'remote-addr', takes: 'host:port', about: 'the address to ask for', for: ['tcp'], path: ['remote_addr'] },
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
    about: 'serve the edges that look for these labels, in place of an address of its own',
    for: each,
    path: ['labels'],
    isMany: true,
  },
  { name: 'metadata', takes: 'text', about: 'shown in the API', for: each, path: ['metadata'] },
  { name: 'name', takes: 'text', about: 'what people call the tunnel', for: all, path: ['name'], only: 'gateway' },
  { name: 'description', takes: 'text', about: 'what it is for', for: all, path: ['description'], only: 'gateway' },
  {
    name: 'host-header',
    takes: 'name',
    about: 'the Host that the service sees',
    agentAdds: ', or `rewrite`',
    for: http,
    path: ['host_header'],
  },
  {
    name: 'basic-auth',
    takes: 'user:password',
    about: 'who may visit',
    agentAdds: '; the file keeps it out of process lists',
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
    about: 'of your application at the provider',
    for: http,
    path: ['oauth', 'client_id'],
  },
  {
    name: 'oauth-client-secret',
    takes: 'secret',
    about: 'its secret',
    agentAdds: '; POSTERN_OAUTH_CLIENT_SECRET keeps it out of process lists',
    for: http,
    path: ['oauth', 'client_secret'],
  },
  {
    name: 'oauth-allow-email',
    takes: 'address',
    about: 'whom of its users to let in',
    for: http,
    path: ['oauth', 'allow_emails'],
    isMany: true,
  },
  {
    name: 'oauth-allow-domain',
    takes: 'domain',
    about: 'users with addresses of this domain too',
    for: http,
    path: ['oauth', 'allow_domains'],
    isMany: true,
  },
  {
    name: 'oauth-scope',
    takes: 'scope',
    about: 'what else to ask the provider for',
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
    about: 'of your application at the issuer',
    for: http,
    path: ['oidc', 'client_id'],
  },
  {
    name: 'oidc-client-secret',
    takes: 'secret',
    about: 'its secret',
    agentAdds: '; POSTERN_OIDC_CLIENT_SECRET keeps it out of process lists',
    for: http,
    path: ['oidc', 'client_secret'],
  },
  {
    name: 'oidc-allow-email',
    takes: 'address',
    about: 'whom of its users to let in',
    for: http,
    path: ['oidc', 'allow_emails'],
    isMany: true,
  },
  {
    name: 'oidc-allow-domain',
    takes: 'domain',
    about: 'users with addresses of this domain too',
    for: http,
    path: ['oidc', 'allow_domains'],
    isMany: true,
  },
  {
    name: 'oidc-scope',
    takes: 'scope',
    about: 'what else to ask the issuer for',
    for: http,
    path: ['oidc', 'scopes'],
    isMany: true,
  },
  {
    name: 'cidr-allow',
    takes: 'cidr',
    about: 'addresses that may visit',
    for: all,
    path: ['ip_restriction', 'allow'],
    isMany: true,
  },
  {
    name: 'cidr-deny',
    takes: 'cidr',
    about: 'addresses among them that may not',
    for: all,
    path: ['ip_restriction', 'deny'],
    isMany: true,
  },
  {
    name: 'mutual-tls-cas',
    takes: 'pem',
    isFile: true,
    about: 'CAs of the certificates that visitors must show',
    for: named,
    path: ['mutual_tls'],
  },
  { name: 'terminate-at', takes: 'place', about: 'where TLS ends: edge or upstream', for: tls, path: ['terminate_at'] },
  {
    name: 'crt',
    takes: 'pem',
    isFile: true,
    about: 'certificate for TLS that ends at the edge',
    for: tls,
    path: ['crt'],
  },
  { name: 'key', takes: 'pem', isFile: true, about: 'its private key', for: tls, path: ['key'] },
  {
    name: 'request-header-add',
    takes: 'name:value',
    about: 'header that the service gets too',
    for: http,
    path: ['request_headers', 'add'],
    isMany: true,
  },
  {
    name: 'request-header-remove',
    takes: 'name',
    about: 'header that the service does not get',
    for: http,
    path: ['request_headers', 'remove'],
    isMany: true,
  },
  {
    name: 'response-header-add',
    takes: 'name:value',
    about: 'header that visitors get too',
    for: http,
    path: ['response_headers', 'add'],
    isMany: true,
  },
  {
    name: 'response-header-remove',
    takes: 'name',
    about: 'header that visitors do not get',
    for: http,
    path: ['response_headers', 'remove'],
    isMany: true,
  },
  { name: 'compression', about: 'compress answers', for: http, path: ['compression'] },
  {
    name: 'circuit-breaker',
    takes: 'share',
    about: 'share of failed answers, 0 to 1, at which visitors are turned away for a while',
    for: http,
    path: ['circuit_breaker'],
    isNumber: true,
  },
  {
    name: 'verify-webhook',
    takes: 'provider',
    about: 'take only signed webhooks of this provider',
    for: http,
    path: ['webhook_verification', 'provider'],
  },
  {
    name: 'verify-webhook-secret',
    takes: 'secret',
    about: 'what they are signed with',
    for: http,
    path: ['webhook_verification', 'secret'],
  },
  {
    name: 'ua-filter-allow',
    takes: 'regex',
    about: 'user agents that may visit',
    for: http,
    path: ['user_agent_filter', 'allow'],
    isMany: true,
  },
  {
    name: 'ua-filter-deny',
    takes: 'regex',
    about: 'user agents that may not',
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
    about: 'turn websockets into plain TCP',
    for: http,
    path: ['websocket_tcp_converter'],
  },
  {
    name: 'proxy-proto',
    takes: 'version',
    about: 'PROXY header that the service wants: 1 or 2',
    for: all,
    path: ['proxy_proto'],
  },
  {
    name: 'app-protocol',
    takes: 'name',
    about: 'what the service speaks: http1 or http2',
    for: ['http', 'labeled'],
    path: ['app_protocol'],
  },
  {
    name: 'upstream-verify',
    about: 'check the certificate of a service with https or tls',
    for: all,
    path: ['upstream_tls', 'verify'],
    only: 'agent',
  },
  {
    name: 'upstream-ca',
    takes: 'pem',
    isFile: true,
    about: 'CAs that may have signed it; turns the check on',
    for: all,
    path: ['upstream_tls', 'ca'],
    only: 'agent',
  },
  {
    name: 'upstream-server-name',
    takes: 'name',
    about: 'the name to ask the service for in TLS',
    for: all,
    path: ['upstream_tls', 'server_name'],
    only: 'agent',
  },
  { name: 'pooling', about: 'refused, with what to do instead', for: all, path: ['pooling'], isHidden: true },
]
