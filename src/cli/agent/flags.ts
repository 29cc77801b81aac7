/** The flags of a tunnel: each is a key of `postern-agent.yml` in another spelling. */
import { type Command, InvalidArgumentError, Option } from 'commander'

export type TunnelCommand = 'http' | 'tcp' | 'tls'

interface TunnelFlag {
  /** As commander wants it: `--domain <name>`; without a value it is a switch. */
  readonly flag: string
  readonly about: string
  readonly for: readonly TunnelCommand[]
  /** The key it stands for. */
  readonly path: readonly [string] | readonly [string, string]
  /** May be given more than once. */
  readonly isMany?: boolean
  readonly isNumber?: boolean
  /** Known, so that it can be answered, and not offered. */
  readonly isHidden?: boolean
}

const all: readonly TunnelCommand[] = ['http', 'tcp', 'tls']
const named: readonly TunnelCommand[] = ['http', 'tls']
const http: readonly TunnelCommand[] = ['http']
const tls: readonly TunnelCommand[] = ['tls']

const tunnelFlags: readonly TunnelFlag[] = [
  { flag: '--url <url>', about: 'the whole address to ask for', for: all, path: ['url'] },
  { flag: '--domain <name>', about: 'the name to ask for', for: named, path: ['domain'] },
  { flag: '--subdomain <name>', about: 'a name under the domain of the server', for: named, path: ['subdomain'] },
  { flag: '--hostname <name>', about: 'same as --domain', for: named, path: ['hostname'] },
  { flag: '--remote-addr <host:port>', about: 'the address to ask for', for: ['tcp'], path: ['remote_addr'] },
  {
    flag: '--scheme <scheme>',
    about: 'http, https or both (default: https)',
    for: http,
    path: ['schemes'],
    isMany: true,
  },
  {
    flag: '--label <name=value>',
    about: 'serve the edges that look for these labels, in place of an address of its own',
    for: all,
    path: ['labels'],
    isMany: true,
  },
  { flag: '--metadata <text>', about: 'shown in the API', for: all, path: ['metadata'] },
  {
    flag: '--host-header <name>',
    about: 'the Host that the service sees, or `rewrite`',
    for: http,
    path: ['host_header'],
  },
  {
    flag: '--basic-auth <user:password>',
    about: 'who may visit; the file keeps it out of process lists',
    for: http,
    path: ['basic_auth'],
    isMany: true,
  },
  {
    flag: '--oauth <provider>',
    about: 'visitors log in with this provider, such as github or google',
    for: http,
    path: ['oauth', 'provider'],
  },
  {
    flag: '--oauth-client-id <id>',
    about: 'of your application at the provider',
    for: http,
    path: ['oauth', 'client_id'],
  },
  {
    flag: '--oauth-client-secret <secret>',
    about: 'its secret; POSTERN_OAUTH_CLIENT_SECRET keeps it out of process lists',
    for: http,
    path: ['oauth', 'client_secret'],
  },
  {
    flag: '--oauth-allow-email <address>',
    about: 'whom of its users to let in',
    for: http,
    path: ['oauth', 'allow_emails'],
    isMany: true,
  },
  {
    flag: '--oauth-allow-domain <domain>',
    about: 'users with addresses of this domain too',
    for: http,
    path: ['oauth', 'allow_domains'],
    isMany: true,
  },
  {
    flag: '--oauth-scope <scope>',
    about: 'what else to ask the provider for',
    for: http,
    path: ['oauth', 'scopes'],
    isMany: true,
  },
  {
    flag: '--oidc <issuer>',
    about: 'visitors log in with the OpenID Connect provider at this URL',
    for: http,
    path: ['oidc', 'issuer_url'],
  },
  {
    flag: '--oidc-client-id <id>',
    about: 'of your application at the issuer',
    for: http,
    path: ['oidc', 'client_id'],
  },
  {
    flag: '--oidc-client-secret <secret>',
    about: 'its secret; POSTERN_OIDC_CLIENT_SECRET keeps it out of process lists',
    for: http,
    path: ['oidc', 'client_secret'],
  },
  {
    flag: '--oidc-allow-email <address>',
    about: 'whom of its users to let in',
    for: http,
    path: ['oidc', 'allow_emails'],
    isMany: true,
  },
  {
    flag: '--oidc-allow-domain <domain>',
    about: 'users with addresses of this domain too',
    for: http,
    path: ['oidc', 'allow_domains'],
    isMany: true,
  },
  {
    flag: '--oidc-scope <scope>',
    about: 'what else to ask the issuer for',
    for: http,
    path: ['oidc', 'scopes'],
    isMany: true,
  },
  {
    flag: '--cidr-allow <cidr>',
    about: 'addresses that may visit',
    for: all,
    path: ['ip_restriction', 'allow'],
    isMany: true,
  },
  {
    flag: '--cidr-deny <cidr>',
    about: 'addresses among them that may not',
    for: all,
    path: ['ip_restriction', 'deny'],
    isMany: true,
  },
  {
    flag: '--mutual-tls-cas <file>',
    about: 'CAs of the certificates that visitors must show',
    for: named,
    path: ['mutual_tls'],
  },
  { flag: '--terminate-at <place>', about: 'where TLS ends: edge or upstream', for: tls, path: ['terminate_at'] },
  { flag: '--crt <file>', about: 'certificate for TLS that ends at the edge', for: tls, path: ['crt'] },
  { flag: '--key <file>', about: 'its private key', for: tls, path: ['key'] },
  {
    flag: '--request-header-add <name:value>',
    about: 'header that the service gets too',
    for: http,
    path: ['request_headers', 'add'],
    isMany: true,
  },
  {
    flag: '--request-header-remove <name>',
    about: 'header that the service does not get',
    for: http,
    path: ['request_headers', 'remove'],
    isMany: true,
  },
  {
    flag: '--response-header-add <name:value>',
    about: 'header that visitors get too',
    for: http,
    path: ['response_headers', 'add'],
    isMany: true,
  },
  {
    flag: '--response-header-remove <name>',
    about: 'header that visitors do not get',
    for: http,
    path: ['response_headers', 'remove'],
    isMany: true,
  },
  { flag: '--compression', about: 'compress answers', for: http, path: ['compression'] },
  {
    flag: '--circuit-breaker <share>',
    about: 'share of failed answers, 0 to 1, at which visitors are turned away for a while',
    for: http,
    path: ['circuit_breaker'],
    isNumber: true,
  },
  {
    flag: '--verify-webhook <provider>',
    about: 'take only signed webhooks of this provider',
    for: http,
    path: ['webhook_verification', 'provider'],
  },
  {
    flag: '--verify-webhook-secret <secret>',
    about: 'what they are signed with',
    for: http,
    path: ['webhook_verification', 'secret'],
  },
  {
    flag: '--ua-filter-allow <regex>',
    about: 'user agents that may visit',
    for: http,
    path: ['user_agent_filter', 'allow'],
    isMany: true,
  },
  {
    flag: '--ua-filter-deny <regex>',
    about: 'user agents that may not',
    for: http,
    path: ['user_agent_filter', 'deny'],
    isMany: true,
  },
  { flag: '--traffic-policy-file <file>', about: 'a traffic policy', for: all, path: ['traffic_policy'] },
  {
    flag: '--websocket-tcp-converter',
    about: 'turn websockets into plain TCP',
    for: http,
    path: ['websocket_tcp_converter'],
  },
  {
    flag: '--proxy-proto <version>',
    about: 'PROXY header that the service wants: 1 or 2',
    for: all,
    path: ['proxy_proto'],
  },
  {
    flag: '--app-protocol <name>',
    about: 'what the service speaks: http1 or http2',
    for: http,
    path: ['app_protocol'],
  },
  {
    flag: '--upstream-verify',
    about: 'check the certificate of a service with https or tls',
    for: all,
    path: ['upstream_tls', 'verify'],
  },
  {
    flag: '--upstream-ca <file>',
    about: 'CAs that may have signed it; turns the check on',
    for: all,
    path: ['upstream_tls', 'ca'],
  },
  {
    flag: '--upstream-server-name <name>',
    about: 'the name to ask the service for in TLS',
    for: all,
    path: ['upstream_tls', 'server_name'],
  },
  { flag: '--pooling', about: 'refused, with what to do instead', for: all, path: ['pooling'], isHidden: true },
]

/** Gives `command` the flags that such a tunnel can have. */
export function addTunnelFlags(command: Command, kind: TunnelCommand): Command {
  for (const { flag, about, isMany, isNumber, isHidden = false } of flagsOf(kind)) {
    const option = new Option(flag, isMany ? `${about} (repeatable)` : about)
    if (isMany) option.argParser((value: string, before: readonly string[] | undefined) => [...(before ?? []), value])
    if (isNumber) option.argParser(numberOf)
    command.addOption(option.hideHelp(isHidden))
  }
  return command
}

/** The tunnel that the flags describe, in the spelling of the file. */
export function tunnelOf(command: Command, kind: TunnelCommand, addr: string): Readonly<Record<string, unknown>> {
  const values = command.opts<Record<string, unknown>>()
  const tunnel: Record<string, unknown> = { addr }
  for (const { flag, path } of flagsOf(kind)) {
    const value = values[new Option(flag).attributeName()]
    if (value === undefined) continue
    const [key, inner] = path
    if (inner === undefined) tunnel[key] = value
    else tunnel[key] = { ...(tunnel[key] as object | undefined), [inner]: value } // only these lines write it
  }
  // With labels the edge decides what visitors speak.
  return tunnel.labels === undefined ? { proto: kind, ...tunnel } : tunnel
}

/** How a key of the file is spelled on the command line. */
export function flagFor(path: readonly string[]): string | undefined {
  if (path[0] === 'addr') return 'the address'
  const found = tunnelFlags.find((each) => path.every((part, i) => each.path[i] === part))
  return found?.flag.replace(/ .*$/, '')
}

function flagsOf(kind: TunnelCommand): readonly TunnelFlag[] {
  return tunnelFlags.filter((each) => each.for.includes(kind))
}

function numberOf(text: string): number {
  const number = Number(text)
  if (text.trim() === '' || Number.isNaN(number)) throw new InvalidArgumentError('It must be a number.')
  return number
}
