/** The flags of a tunnel, for the agent and the SSH gateway: each sets a key of `postern-agent.yml`. */
import { all, http, named, type TunnelKind, tls } from './endpoint-options.ts'

/** Who reads flags: the agent from its command line, the SSH gateway from the command of a client. */
export type FlagTaker = 'agent' | 'gateway'

export interface TunnelFlag extends Omit<FlagLine, 'flag' | 'key' | 'isMany'> {
  /** Without dashes. */
  readonly name: string
  /** The placeholder of the value in the help; a flag without one is a switch. */
  readonly takes: string | undefined
  /** Whether it may be given more than once: for both takers, or for one. */
  readonly isMany: boolean | FlagTaker
  /** The key it sets. */
  readonly path: readonly [string] | readonly [string, string]
}

interface FlagLine {
  /** The name, and the placeholder of its value; dots follow a placeholder that may be given more than once. */
  readonly flag: string
  readonly about: string
  /** Added to `about` in the agent's help. */
  readonly agentAdds?: string
  /** The commands that have it. */
  readonly for: readonly TunnelKind[]
  /** The key it sets, if that is not its name. */
  readonly key?: string
  readonly isMany?: FlagTaker
  readonly isNumber?: boolean
  /** Whether the value may name a file, for takers that can read files. */
  readonly isFile?: boolean
  /** The only taker that has it. */
  readonly only?: FlagTaker
}

const each: readonly TunnelKind[] = [...all, 'labeled']

const lines: readonly FlagLine[] = [
  { flag: 'url <url>', about: 'the full public URL to request', for: all },
  { flag: 'domain <name>', about: 'the domain name to request', for: named },
  { flag: 'subdomain <name>', about: "a name under the server's domain", for: named },
  { flag: 'hostname <name>', about: 'same as --domain', for: named },
  { flag: 'remote-addr <host:port>', about: 'the public address to request', for: ['tcp'] },
  {
    flag: 'scheme <scheme>',
    about: 'http or https (default: https)',
    agentAdds: ', or both',
    for: http,
    key: 'schemes',
    isMany: 'agent',
  },
  {
    flag: 'label <name=value...>',
    about: 'serve edges that match these labels, instead of a public address',
    for: each,
    key: 'labels',
  },
  { flag: 'metadata <text>', about: 'shown in the API', for: each },
  { flag: 'name <text>', about: 'name of the tunnel, shown in the API', for: all, only: 'gateway' },
  { flag: 'description <text>', about: 'what the tunnel is for, shown in the API', for: all, only: 'gateway' },
  { flag: 'host-header <name>', about: 'Host header to send to the service', agentAdds: ', or `rewrite`', for: http },
  {
    flag: 'basic-auth <user:password...>',
    about: 'require this user name and password',
    agentAdds: '; set it in the file to keep it out of process lists',
    for: http,
  },
  {
    flag: 'oauth <provider>',
    about: 'visitors log in with this provider, such as github or google',
    for: http,
    key: 'oauth.provider',
  },
  ...loginFlags('oauth', 'provider'),
  {
    flag: 'oidc <issuer>',
    about: 'visitors log in with the OpenID Connect provider at this URL',
    for: http,
    key: 'oidc.issuer_url',
  },
  ...loginFlags('oidc', 'issuer'),
  { flag: 'cidr-allow <cidr...>', about: 'network to allow visitors from', for: all, key: 'ip_restriction.allow' },
  {
    flag: 'cidr-deny <cidr...>',
    about: 'network to deny visitors from, even if --cidr-allow includes it',
    for: all,
    key: 'ip_restriction.deny',
  },
  {
    flag: 'mutual-tls-cas <pem>',
    isFile: true,
    about: 'require client certificates signed by these CAs',
    for: named,
    key: 'mutual_tls',
  },
  { flag: 'terminate-at <place>', about: 'where TLS is terminated: edge or upstream', for: tls },
  { flag: 'crt <pem>', isFile: true, about: 'certificate for TLS terminated at the edge', for: tls },
  { flag: 'key <pem>', isFile: true, about: 'private key of that certificate', for: tls },
  ...headerFlags('request'),
  ...headerFlags('response'),
  { flag: 'compression', about: 'compress responses', for: http },
  {
    flag: 'circuit-breaker <share>',
    about: 'share of failed responses, 0 to 1, at which visitors are rejected for a while',
    for: http,
    isNumber: true,
  },
  {
    flag: 'verify-webhook <provider>',
    about: 'accept only signed webhooks of this provider',
    for: http,
    key: 'webhook_verification.provider',
  },
  {
    flag: 'verify-webhook-secret <secret>',
    about: 'secret that signs the webhooks',
    for: http,
    key: 'webhook_verification.secret',
  },
  { flag: 'ua-filter-allow <regex...>', about: 'user agents to allow', for: http, key: 'user_agent_filter.allow' },
  { flag: 'ua-filter-deny <regex...>', about: 'user agents to deny', for: http, key: 'user_agent_filter.deny' },
  {
    flag: 'traffic-policy-file <policy>',
    isFile: true,
    about: 'a traffic policy',
    for: all,
    key: 'traffic_policy',
    only: 'agent',
  },
  { flag: 'traffic-policy <policy>', about: 'a traffic policy, as JSON or YAML', for: all, only: 'gateway' },
  { flag: 'websocket-tcp-converter', about: 'turn WebSockets into plain TCP', for: http },
  { flag: 'proxy-proto <version>', about: 'version of the PROXY header that the service expects: 1 or 2', for: all },
  { flag: 'app-protocol <name>', about: 'HTTP version of the service: http1 or http2', for: ['http', 'labeled'] },
  {
    flag: 'upstream-verify',
    about: 'check the certificate of an https or tls service',
    for: all,
    key: 'upstream_tls.verify',
    only: 'agent',
  },
  {
    flag: 'upstream-ca <pem>',
    isFile: true,
    about: 'CAs to trust for that certificate; implies --upstream-verify',
    for: all,
    key: 'upstream_tls.ca',
    only: 'agent',
  },
  {
    flag: 'upstream-server-name <name>',
    about: 'name to send to the service in the TLS handshake',
    for: all,
    key: 'upstream_tls.server_name',
    only: 'agent',
  },
  { flag: 'pooling', about: 'share the address with other tunnels that also set --pooling', for: all, only: 'agent' },
]

export const tunnelFlags: readonly TunnelFlag[] = lines.map(({ flag, key: given, isMany, ...rest }) => {
  const [, name = '', takes, dots] = /^(\S+)(?: <(.+?)(\.\.\.)?>)?$/.exec(flag) ?? []
  const [key = '', inner] = (given ?? name.replaceAll('-', '_')).split('.')
  return {
    ...rest,
    name,
    takes,
    isMany: isMany ?? dots !== undefined,
    path: inner === undefined ? [key] : [key, inner],
  }
})

/** The application with which visitors log in, and whom it lets in. */
function loginFlags(login: 'oauth' | 'oidc', at: string): FlagLine[] {
  const flags = [
    { flag: 'client-id <id>', about: `client id of your application at the ${at}`, key: 'client_id' },
    {
      flag: 'client-secret <secret>',
      about: 'client secret of that application',
      agentAdds: `; set POSTERN_${login.toUpperCase()}_CLIENT_SECRET instead to keep it out of process lists`,
      key: 'client_secret',
    },
    { flag: 'allow-email <address...>', about: 'email address of a user to let in', key: 'allow_emails' },
    { flag: 'allow-domain <domain...>', about: 'email domain whose users to let in', key: 'allow_domains' },
    { flag: 'scope <scope...>', about: `further scope to request from the ${at}`, key: 'scopes' },
  ]
  return flags.map((each) => ({ ...each, flag: `${login}-${each.flag}`, for: http, key: `${login}.${each.key}` }))
}

function headerFlags(of: 'request' | 'response'): FlagLine[] {
  return [
    { flag: `${of}-header-add <name:value...>`, about: `header to add to ${of}s`, for: http, key: `${of}_headers.add` },
    {
      flag: `${of}-header-remove <name...>`,
      about: `header to remove from ${of}s`,
      for: http,
      key: `${of}_headers.remove`,
    },
  ]
}
