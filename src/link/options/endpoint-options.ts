/** The options of an endpoint: how each is written, which kinds of tunnels can have it, and how a bind spells it. */

import { certificatesPem, type ReadText, readPolicy } from './file-values.ts'
import type { OptionReader } from './option-reader.ts'

/** A tunnel has one of three kinds of addresses, or edges find it by its labels. */
export type TunnelKind = 'http' | 'tcp' | 'tls' | 'labeled'

/** Fields of the options of a bind. */
export type Opts = Record<string, unknown>

interface EndpointOption {
  readonly key: string
  readonly for: readonly TunnelKind[]
  readonly read: (reader: OptionReader, key: string, context: Context) => Opts
}

interface Context {
  readonly kind: TunnelKind
  readonly readText: ReadText
  /** Environment variables that may hold secrets; absent where there are none. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined
}

export const named: readonly TunnelKind[] = ['http', 'tls']
export const http: readonly TunnelKind[] = ['http']
export const tls: readonly TunnelKind[] = ['tls']
export const all: readonly TunnelKind[] = ['http', 'tcp', 'tls']

/** In the order in which they are read. */
const endpointOptions: readonly EndpointOption[] = [
  { key: 'url', for: all, read: (reader, key) => optionIf('URL', reader.word(key)) },
  { key: 'domain', for: named, read: (reader, key) => optionIf('Domain', reader.word(key)) },
  { key: 'hostname', for: named, read: (reader, key) => optionIf('Hostname', reader.word(key)) },
  { key: 'subdomain', for: named, read: (reader, key) => optionIf('Subdomain', reader.word(key)) },
  { key: 'remote_addr', for: ['tcp'], read: (reader, key) => optionIf('Addr', reader.word(key)) },
  { key: 'proxy_proto', for: all, read: (reader, key) => optionIf('ProxyProto', reader.choice(key, [0, 1, 2])) },
  { key: 'ip_restriction', for: all, read: ipRestriction },
  { key: 'mutual_tls', for: named, read: mutualTls },
  { key: 'terminate_at', for: tls, read: termination },
  { key: 'crt', for: tls, read: ownCertificate },
  { key: 'key', for: tls, read: ownKey },
  { key: 'basic_auth', for: http, read: basicAuth },
  { key: 'oauth', for: http, read: (reader, key, { env }) => login(reader, key, oauthNames, env) },
  { key: 'oidc', for: http, read: (reader, key, { env }) => login(reader, key, oidcNames, env) },
  { key: 'webhook_verification', for: http, read: webhookVerification },
  { key: 'user_agent_filter', for: http, read: userAgentFilter },
  { key: 'circuit_breaker', for: http, read: circuitBreaker },
  { key: 'request_headers', for: http, read: (reader, key) => optionIf('RequestHeaders', headers(reader, key)) },
  { key: 'response_headers', for: http, read: (reader, key) => optionIf('ResponseHeaders', headers(reader, key)) },
  { key: 'compression', for: http, read: (reader, key) => optionIf('Compression', reader.flag(key) ? {} : undefined) },
  {
    key: 'websocket_tcp_converter',
    for: http,
    read: (reader, key) => optionIf('WebsocketTCPConverter', reader.flag(key) ? {} : undefined),
  },
  { key: 'traffic_policy', for: all, read: trafficPolicy },
  { key: 'policy', for: all, read: trafficPolicy },
]

/** A tunnel has at most one option of each group. */
const exclusive: readonly (readonly [keys: readonly string[], why: string])[] = [
  [['url', 'domain', 'hostname', 'subdomain', 'remote_addr'], 'a tunnel has one name'],
  [['traffic_policy', 'policy'], 'a tunnel has one policy'],
  [['oauth', 'oidc'], 'visitors log in with one of them'],
]

/** The options that `reader` holds for a tunnel of this kind; others are refused, never dropped silently. */
export function readEndpointOptions(reader: OptionReader, context: Context): Opts {
  const opts: Opts = {}
  for (const { key, for: kinds, read } of endpointOptions) {
    if (!reader.has(key)) continue
    if (kinds.includes(context.kind)) Object.assign(opts, read(reader, key, context))
    else reader.fault(key, whyMisplaced(context.kind, kinds))
  }
  for (const [keys, why] of exclusive) {
    const [first, second] = keys.filter((key) => reader.has(key))
    if (second !== undefined) reader.fault(second, `cannot be combined with \`${first}\`: ${why}`)
  }
  return opts
}

function whyMisplaced(kind: TunnelKind, kinds: readonly TunnelKind[]): string {
  if (kind === 'labeled') return 'cannot be combined with `labels`: it is set on the edge'
  return `is for ${kinds.join(' and ')} tunnels, and this one is ${kind}`
}

function optionIf(name: string, value: unknown): Opts {
  return value === undefined ? {} : { [name]: value }
}

function ipRestriction(reader: OptionReader, key: string): Opts {
  const map = reader.map(key)
  if (!map) return {}
  const [allow, deny] = [map.texts('allow'), map.texts('deny')]
  map.finish()
  if (allow === undefined) map.fault('allow', 'is missing: without it nobody gets in')
  return { IPRestriction: { allow_cidrs: allow ?? [], deny_cidrs: deny ?? [] } }
}

function mutualTls(reader: OptionReader, key: string, { kind, readText }: Context): Opts {
  const pem = reader.parsed(key, (text) => certificatesPem(readText(text)))
  return optionIf(kind === 'tls' ? 'MutualTLSAtEdge' : 'MutualTLSCA', pem && { mutual_tls_ca: base64(pem) })
}

/** Uses a certificate of the server's own, unless `crt` gives one. */
function termination(reader: OptionReader, key: string): Opts {
  return reader.choice(key, ['edge', 'upstream']) === 'edge' ? { TLSTermination: {} } : {}
}

function ownCertificate(reader: OptionReader, key: string, { readText }: Context): Opts {
  if (reader.text('terminate_at') !== 'edge') reader.fault(key, 'needs `terminate_at: edge`')
  if (!reader.has('key')) reader.fault(key, 'needs its private key as `key`')
  const cert = reader.parsed(key, (text) => certificatesPem(readText(text)))
  const privateKey = reader.parsed('key', readText)
  return optionIf('TLSTermination', cert && privateKey && { cert: base64(cert), key: base64(privateKey) })
}

function ownKey(reader: OptionReader, key: string): Opts {
  if (!reader.has('crt')) reader.fault(key, 'needs its certificate as `crt`')
  return {}
}

function basicAuth(reader: OptionReader, key: string): Opts {
  const pairs = reader.texts(key)?.map((text) => /^([^:]+):(.+)$/s.exec(text))
  if (!pairs) return {}
  if (pairs.includes(null)) reader.fault(key, 'must be a list of `user:password`')
  const credentials = pairs.map((pair) => ({ username: pair?.[1] ?? '', cleartext_password: pair?.[2] ?? '' }))
  return { BasicAuth: { credentials } }
}

/** Names that differ between the two kinds of logins: the option of the bind, the provider's key, the secret's variable. */
interface LoginNames {
  readonly option: string
  readonly provider: string
  readonly variable: string
}

const oauthNames: LoginNames = { option: 'OAuth', provider: 'provider', variable: 'POSTERN_OAUTH_CLIENT_SECRET' }
const oidcNames: LoginNames = { option: 'OIDC', provider: 'issuer_url', variable: 'POSTERN_OIDC_CLIENT_SECRET' }

function login(
  reader: OptionReader,
  key: string,
  { option, provider, variable }: LoginNames,
  env: Context['env'],
): Opts {
  const map = reader.map(key)
  if (!map) return {}
  const asked = {
    [provider]: map.word(provider),
    client_id: map.word('client_id'),
    // An empty variable counts as unset.
    client_secret: map.word('client_secret') ?? (env?.[variable] || undefined),
    allow_emails: map.texts('allow_emails') ?? [],
    allow_domains: map.texts('allow_domains') ?? [],
    scopes: map.texts('scopes') ?? [],
  }
  map.finish()
  if (!map.has(provider)) map.fault(provider, 'is missing: it says where visitors log in')
  if (!map.has('client_id')) map.fault('client_id', 'is missing: register an application of your own at the provider')
  if (asked.client_secret === undefined && !map.has('client_secret')) {
    const byVariable = env && `; you can set ${variable} instead (with a file, only if --config names it)`
    map.fault('client_secret', `is missing${byVariable ?? ': it is shown with the id of the application'}`)
  }
  return { [option]: asked }
}

function trafficPolicy(reader: OptionReader, key: string, { readText }: Context): Opts {
  return optionIf(
    'TrafficPolicy',
    reader.parsedOrJson(key, (text) => readPolicy(text, readText)),
  )
}

function webhookVerification(reader: OptionReader, key: string): Opts {
  const map = reader.map(key)
  if (!map) return {}
  const [provider, secret] = [map.word('provider'), map.word('secret')]
  map.finish()
  for (const each of ['provider', 'secret']) if (!map.has(each)) map.fault(each, 'is missing')
  return { WebhookVerification: { provider, secret } }
}

function userAgentFilter(reader: OptionReader, key: string): Opts {
  const map = reader.map(key)
  if (!map) return {}
  const [allow = [], deny = []] = [map.texts('allow'), map.texts('deny')]
  map.finish()
  return { UserAgentFilter: { allow, deny } }
}

function circuitBreaker(reader: OptionReader, key: string): Opts {
  const threshold = reader.number(key, { from: 0, to: 1 })
  return optionIf('CircuitBreaker', threshold === undefined ? undefined : { error_threshold: threshold })
}

function headers(reader: OptionReader, key: string): { add: string[]; remove: readonly string[] } | undefined {
  const map = reader.map(key)
  if (!map) return undefined
  const add = (map.pairs('add', ':') ?? []).map(([name, value]) => `${name}:${value}`)
  const remove = map.texts('remove') ?? []
  map.finish()
  return { add, remove }
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64')
}
