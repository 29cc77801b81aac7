/** The options of an endpoint: how each is written, which tunnels can have it, and how it goes over the wire. */

import type { Reader } from './reader.ts'
import type { ReadText } from './text-files.ts'
import { certificatesPem, readPolicy } from './text-files.ts'

/** What a tunnel is: one of three kinds of addresses, or found by an edge through its labels. */
export type TunnelKind = 'http' | 'tcp' | 'tls' | 'labeled'

/** Fields of the options of a bind. */
export type Opts = Record<string, unknown>

export interface EndpointOption {
  readonly key: string
  readonly for: readonly TunnelKind[]
  readonly read: (reader: Reader, key: string, context: { kind: TunnelKind; readText: ReadText }) => Opts
}

const named: readonly TunnelKind[] = ['http', 'tls']
const http: readonly TunnelKind[] = ['http']
const tls: readonly TunnelKind[] = ['tls']
const all: readonly TunnelKind[] = ['http', 'tcp', 'tls']

/** In the order in which they are looked at. */
export const endpointOptions: readonly EndpointOption[] = [
  { key: 'url', for: all, read: (reader, key) => given('URL', reader.word(key)) },
  { key: 'domain', for: named, read: (reader, key) => given('Domain', reader.word(key)) },
  { key: 'hostname', for: named, read: (reader, key) => given('Hostname', reader.word(key)) },
  { key: 'subdomain', for: named, read: (reader, key) => given('Subdomain', reader.word(key)) },
  { key: 'remote_addr', for: ['tcp'], read: (reader, key) => given('Addr', reader.word(key)) },
  { key: 'proxy_proto', for: all, read: (reader, key) => given('ProxyProto', reader.choice(key, [0, 1, 2])) },
  { key: 'ip_restriction', for: all, read: ipRestriction },
  { key: 'mutual_tls', for: named, read: mutualTls },
  { key: 'terminate_at', for: tls, read: termination },
  { key: 'crt', for: tls, read: ownCertificate },
  { key: 'key', for: tls, read: ownKey },
  { key: 'basic_auth', for: http, read: basicAuth },
  { key: 'webhook_verification', for: http, read: webhookVerification },
  { key: 'user_agent_filter', for: http, read: userAgentFilter },
  { key: 'circuit_breaker', for: http, read: circuitBreaker },
  { key: 'request_headers', for: http, read: (reader, key) => given('RequestHeaders', headers(reader, key)) },
  { key: 'response_headers', for: http, read: (reader, key) => given('ResponseHeaders', headers(reader, key)) },
  { key: 'compression', for: http, read: (reader, key) => given('Compression', reader.flag(key) ? {} : undefined) },
  {
    key: 'websocket_tcp_converter',
    for: http,
    read: (reader, key) => given('WebsocketTCPConverter', reader.flag(key) ? {} : undefined),
  },
  {
    key: 'traffic_policy',
    for: all,
    read: (reader, key, { readText }) =>
      given(
        'TrafficPolicy',
        reader.parsedOrJson(key, (text) => readPolicy(text, readText)),
      ),
  },
]

/** Of these a tunnel has at most one. */
const nameKeys = ['url', 'domain', 'hostname', 'subdomain', 'remote_addr']

/** The options that `reader` holds for a tunnel of this kind; what such a tunnel cannot have is refused, never dropped. */
export function readEndpointOptions(reader: Reader, context: { kind: TunnelKind; readText: ReadText }): Opts {
  const opts: Opts = {}
  for (const { key, for: kinds, read } of endpointOptions) {
    if (!reader.has(key)) continue
    if (kinds.includes(context.kind)) Object.assign(opts, read(reader, key, context))
    else reader.fault(key, misplaced(context.kind, kinds))
  }
  const names = nameKeys.filter((key) => reader.has(key))
  if (names.length > 1) reader.fault(names[1] ?? '', `cannot stand beside \`${names[0]}\`: a tunnel has one name`)
  return opts
}

function misplaced(kind: TunnelKind, kinds: readonly TunnelKind[]): string {
  if (kind === 'labeled') return 'cannot stand beside `labels`: it is set on the edge'
  return `is for ${kinds.join(' and ')} tunnels, and this one is ${kind}`
}

function given(name: string, value: unknown): Opts {
  return value === undefined ? {} : { [name]: value }
}

function ipRestriction(reader: Reader, key: string): Opts {
  const map = reader.map(key)
  if (!map) return {}
  const [allow, deny] = [map.texts('allow'), map.texts('deny')]
  map.finish()
  if (allow === undefined) map.fault('allow', 'is missing: nobody else gets in')
  return { IPRestriction: { allow_cidrs: allow ?? [], deny_cidrs: deny ?? [] } }
}

function mutualTls(reader: Reader, key: string, { kind, readText }: { kind: TunnelKind; readText: ReadText }): Opts {
  const pem = reader.parsed(key, (text) => certificatesPem(readText(text)))
  return given(kind === 'tls' ? 'MutualTLSAtEdge' : 'MutualTLSCA', pem && { mutual_tls_ca: base64(pem) })
}

/** With a certificate of the server's own, unless `crt` says otherwise. */
function termination(reader: Reader, key: string): Opts {
  return reader.choice(key, ['edge', 'upstream']) === 'edge' ? { TLSTermination: {} } : {}
}

function ownCertificate(reader: Reader, key: string, { readText }: { readText: ReadText }): Opts {
  if (reader.text('terminate_at') !== 'edge') reader.fault(key, 'needs `terminate_at: edge`')
  if (!reader.has('key')) reader.fault(key, 'needs its private key as `key`')
  const cert = reader.parsed(key, (text) => certificatesPem(readText(text)))
  const privateKey = reader.parsed('key', readText)
  return given('TLSTermination', cert && privateKey && { cert: base64(cert), key: base64(privateKey) })
}

function ownKey(reader: Reader, key: string): Opts {
  if (!reader.has('crt')) reader.fault(key, 'needs its certificate as `crt`')
  return {}
}

function basicAuth(reader: Reader, key: string): Opts {
  const pairs = reader.texts(key)?.map((text) => /^([^:]+):(.+)$/s.exec(text))
  if (!pairs) return {}
  if (pairs.includes(null)) reader.fault(key, 'must be a list of `user:password`')
  const credentials = pairs.map((pair) => ({ username: pair?.[1] ?? '', cleartext_password: pair?.[2] ?? '' }))
  return { BasicAuth: { credentials } }
}

function webhookVerification(reader: Reader, key: string): Opts {
  const map = reader.map(key)
  if (!map) return {}
  const [provider, secret] = [map.word('provider'), map.word('secret')]
  map.finish()
  for (const each of ['provider', 'secret']) if (!map.has(each)) map.fault(each, 'is missing')
  return { WebhookVerification: { provider, secret } }
}

function userAgentFilter(reader: Reader, key: string): Opts {
  const map = reader.map(key)
  if (!map) return {}
  const [allow = [], deny = []] = [map.texts('allow'), map.texts('deny')]
  map.finish()
  return { UserAgentFilter: { allow, deny } }
}

function circuitBreaker(reader: Reader, key: string): Opts {
  const threshold = reader.number(key, { from: 0, to: 1 })
  return given('CircuitBreaker', threshold === undefined ? undefined : { error_threshold: threshold })
}

function headers(reader: Reader, key: string): { add: string[]; remove: readonly string[] } | undefined {
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
