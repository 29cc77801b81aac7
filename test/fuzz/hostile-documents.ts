/** Documents designed to be expensive to read, check, compile or store. */

import { hostileExpression } from './hostile-expressions.ts'

/** Numbers below `below`, the same for the same seed. */
export type Random = (below: number) => number

/** mulberry32 */
export function seeded(seed: number): Random {
  let state = seed >>> 0
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below
  }
}

export interface HostileDocument {
  readonly what: string
  /** `route`: PUT on a route. `edge`: POST of an edge. `bind`: options of a bind. `raw`: bytes for POST of a resource. */
  readonly to: 'route' | 'edge' | 'bind' | 'raw'
  /** The last part of the path, if there is one. */
  readonly at: string
  readonly body: unknown
}

const KIB = 1024
const MIB = KIB * KIB

/** Cuts a text to this many bytes; all texts here are ASCII, or may be cut anywhere. */
const fit = (text: string, bytes: number): string => text.slice(0, bytes)

/** Each returns a pattern of at most 1 KiB. */
const patterns: readonly ((random: Random) => string)[] = [
  (r) => `[${'\\pL'.repeat(1 + r(340))}]`,
  (r) => `[${'\\pL'.repeat(1 + r(20))}]`,
  (r) => `\\pL{${1 + r(100)}}x`,
  (r) => `(?i)[a-z]{1,${1 + r(60)}}${'\\pN'.repeat(r(3))}`,
  (r) => `(?i)[${['\\p{Lu}', '\\PL', '\\p{Greek}', '\\pN'][r(4)]?.repeat(1 + r(140))}]`,
  (r) => `(?i)[${'B-\\x{1e942}'.repeat(1 + r(80))}]`,
  (r) => '\\pL|'.repeat(r(250)),
  (r) => `\\pL{${1 + r(1000)}}`,
  (r) => `(?:${'a?b?'.repeat(1 + r(20))}){${1 + r(1000)}}`,
  (r) => 'a{999}'.repeat(1 + r(140)),
  (r) => `${'('.repeat(r(500))}a${')'.repeat(r(500))}`,
  (r) => '['.repeat(r(1024)),
  (r) => `[[:alpha:]${'[:^digit:]'.repeat(r(90))}`,
  (r) => `(?i)${'\u01c5'.repeat(r(500))}`,
  (r) => `[${Array.from({ length: r(330) }, (_, i) => String.fromCodePoint(0x1000 + 3 * i)).join('')}]{${1 + r(90)}}`,
  (r) => `\\Q${'a{9}'.repeat(r(240))}`,
  (r) => '\\p{'.repeat(r(340)),
  (r) => '(a*)*'.repeat(r(200)),
  (r) => `[ab]*a[ab]{${r(900)}}c`,
  (r) => Array.from({ length: r(250) }, (_, i) => `${i.toString(36)}x`).join('|'),
  () => 'Mozilla/5\\.0 \\(.*(Windows|Linux).*\\) (Chrome|Firefox)/\\d+',
]

const filter = (random: Random) => {
  const one = pick(random, patterns)
  // A few patterns may be accepted, and are then compiled and served.
  const most = pick(random, [3, 10, 101])
  const some = (): string[] =>
    Array.from({ length: random(most) }, () =>
      fit(random(3) === 0 ? pick(random, patterns)(random) : one(random), 1000),
    )
  return { allow: some(), deny: some() }
}

const templates: readonly ((random: Random, bytes: number) => string)[] = [
  (_, bytes) => fit('${1}'.repeat(bytes), bytes),
  (_, bytes) => fit('${'.repeat(bytes), bytes),
  (_, bytes) => fit('${}'.repeat(bytes), bytes),
  (_, bytes) => fit('${conn.client_ip}'.repeat(bytes / 4), bytes),
  (_, bytes) => `${fit('${{'.repeat(bytes), bytes - 4)}}}}}`,
  (_, bytes) => fit('${"'.repeat(bytes), bytes),
  (r, bytes) => fit(`${'x'.repeat(r(bytes))}\${req.url}`.repeat(20), bytes),
]

const expressions: readonly ((random: Random) => string)[] = [
  (r) => `${'!'.repeat(r(1499))}true`,
  (r) => `1${'+1'.repeat(r(740))} == 1`,
  (r) => `[${'1,'.repeat(r(740))}1] == []`,
  (r) => `${'('.repeat(r(40))}true${')'.repeat(r(40))}`,
  (r) => `${'[1].all(a,[1].all(b,[1].all(c,true)))&&'.repeat(r(40))}true`,
  (r) => `${'a ? '.repeat(r(400))}b`,
  (r) => `req.url.path.matches('${fit(pick(r, patterns)(r), 900).replace(/['\\]/g, 'x')}')`,
  (r) => `conn.tls${'.x'.repeat(r(900))} == 1`,
  (r) => `{${'1:1,'.repeat(r(500))}1:1} == {}`,
  (r) => `"${'\\n'.repeat(r(1900))}" == ""`,
  (r) => `${"'''".repeat(r(1000))}`,
  () => "req.method == 'GET' && conn.client_ip != '192.0.2.1'",
  (r) => hostileExpression(r),
]

/** The most expensive policies that are accepted. */
const takenPolicy = (random: Random) => {
  const text = pick(random, [
    () => Array.from({ length: 110 }, (_, i) => `req.headers['x-${i}'][0] == 'a'`).join(' || '),
    () => Array.from({ length: 60 }, (_, i) => `[${i}].all(x,[1].all(y,x<y))`).join(' && '),
    () => `[${'1,'.repeat(740)}1].size() > ${random(9)}`,
    () => Array.from({ length: 40 }, (_, i) => `req.url.path.matches('(?i)^/[a-z]{1,9}/${i}')`).join(' || '),
  ])()
  const rules = Array.from({ length: 1 + random(15) }, (_, i) => ({
    expressions: [`${text} || req.method == '${i}'`],
    actions: [{ type: 'add-headers', config: { headers: { a: '${conn.client_ip}' } } }],
  }))
  return { inbound: rules }
}

const policy = (random: Random) => {
  if (random(4) === 0) return takenPolicy(random)
  const one = pick(random, expressions)
  const text = (): string => fit(random(4) === 0 ? pick(random, expressions)(random) : one(random), 4000)
  const bytes = 1 + random(900 * KIB)
  const action = pick(random, [
    () => ({ type: 'deny' }),
    () => ({ type: 'log', config: { metadata: { a: pick(random, templates)(random, bytes) } } }),
    () => ({ type: 'set-vars', config: { vars: [{ a: pick(random, templates)(random, bytes) }] } }),
    () => ({ type: 'url-rewrite', config: { from: fit(pick(random, patterns)(random), 1000), to: 'x' } }),
    () => ({ type: 'custom-response', config: { body: pick(random, templates)(random, Math.min(bytes, 64 * KIB)) } }),
    () => ({
      type: 'restrict-ips',
      config: { allow: Array.from({ length: random(1000) }, (_, i) => `10.${i >> 8}.${i & 255}.0/24`) },
    }),
    () => ({ type: 'add-headers', config: { headers: { a: pick(random, templates)(random, 4000) } } }),
  ])()
  const rules = Array.from({ length: 1 + random(100) }, () => ({
    expressions: Array.from({ length: random(12) }, text).filter((each) => each !== ''),
    actions: [{ type: 'log', config: { metadata: { x: '1' } } }],
  }))
  return { inbound: [...rules, { actions: [action] }] }
}

/** Up to 64 KiB. */
const yaml: readonly string[] = [
  `[${'a,'.repeat(32 * KIB - 2)}a]`,
  `[${'{},'.repeat(21 * KIB)}{}]`,
  '- a\n'.repeat(16 * KIB),
  Array.from({ length: 6000 }, (_, i) => `k${i}: 1`).join('\n'),
  '#\n'.repeat(32 * KIB),
  '- &a 1\n'.repeat(9 * KIB),
  `- &a [1,2,3]\n${'- *a\n'.repeat(12_000)}`,
  '? '.repeat(32 * KIB),
  '['.repeat(64 * KIB),
  '}'.repeat(64 * KIB),
  '- "\\n"\n'.repeat(9 * KIB),
  '- |\n a\n'.repeat(7 * KIB),
  'a: '.repeat(21 * KIB),
  '---\n'.repeat(16 * KIB),
  '- ! a\n'.repeat(10 * KIB),
  `a: &a [x]\n${Array.from({ length: 1000 }, (_, i) => `b${i}: [*a,*a,*a,*a]`).join('\n')}`,
  '"'.repeat(64 * KIB),
  `inbound: [${'{actions: [{type: deny}]},'.repeat(2000)}]`,
]

/** Up to 1 MiB of JSON. */
const json: readonly (() => string)[] = [
  () => `[${'[],'.repeat(MIB / 3 - 2)}[]]`,
  () => `{"hostports":[${'1,'.repeat(MIB / 2 - 20)}1]}`,
  () => `{${Array.from({ length: 80_000 }, (_, i) => `"${i.toString(36)}":1`).join()}}`,
  () => `{${Array.from({ length: 9900 }, (_, i) => `"${i * 7919}":1`).join()}}`,
  () => `{"description":"${'\\u0041'.repeat(MIB / 6 - 10)}"}`,
  () => `{"description":"${'a'.repeat(MIB - 20)}"}`,
  () => `{"metadata":${'['.repeat(32)}${']'.repeat(32)}}`,
  () => `{"a":${'[[]],'.repeat(9)}1`,
  () => `${'\n'.repeat(MIB - 2)}x`,
  () => `${' '.repeat(MIB - 2)}{}`,
  () => `{"${'k'.repeat(MIB - 10)}":1}`,
  () => `{"hostports":[${Array.from({ length: 6000 }, (_, i) => `{"k${i}":1}`).join()}]}`,
  () => `{"hostports":[${Array.from({ length: 4900 }, (_, i) => `"h${i}.example.com:443"`).join()}]}`,
  () => `{"labels":{${Array.from({ length: 2400 }, (_, i) => `"l${i}":"v"`).join()}}}`,
  () => `{"acl":[${Array.from({ length: 1000 }, (_, i) => `"bind:${'a'.repeat(900)}${i}.example.com"`).join()}]}`,
  () => `{"ca_pem":"${'-----BEGIN CERTIFICATE-----\\nMIIB\\n-----END CERTIFICATE-----\\n'.repeat(4000)}"}`,
  () => `{"public_key":"ssh-rsa ${'A'.repeat(MIB / 2)}"}`,
  () => `{"saml":{"idp_metadata":"${'<a>'.repeat(MIB / 4)}"}}`,
]

const paths = [
  'edges/https',
  'edges/tls',
  'backends/tunnel_group',
  'certificate_authorities',
  'credentials',
  'ssh_credentials',
  'ssh_user_certificates',
]

const bind = (random: Random): Record<string, unknown> =>
  pick(random, [
    () => ({ UserAgentFilter: filter(random) }),
    () => ({
      RequestHeaders: { Add: Array.from({ length: 100 }, (_, i) => `x${i}:${pick(random, templates)(random, 4000)}`) },
    }),
    () => ({ ResponseHeaders: { Remove: Array.from({ length: 5000 }, (_, i) => `x${i}`) } }),
    () => Object.fromEntries(Array.from({ length: random(2400) }, (_, i) => [`Option${i}`, i])),
    () => ({
      IPRestriction: { AllowCIDRs: Array.from({ length: random(5000) }, (_, i) => `10.${i >> 8}.${i & 255}.0/24`) },
    }),
    () => ({
      MutualTLSCA: {
        MutualTlsCa: Buffer.from(
          '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n'.repeat(random(9000)),
        ).toString('base64'),
      },
    }),
    () => ({ Compression: Array.from({ length: random(4900) }, () => 1) }),
  ])()

/** Generates documents without end. */
export function* hostileDocuments(random: Random): Generator<HostileDocument> {
  const kinds: readonly (() => HostileDocument)[] = [
    () => ({ what: 'patterns', to: 'route', at: 'user_agent_filter', body: filter(random) }),
    () => ({
      what: 'templates',
      to: 'route',
      at: pick(random, ['request_headers', 'response_headers']),
      body: headers(random),
    }),
    () => ({ what: 'policy', to: 'route', at: 'policy', body: policy(random) }),
    () => ({ what: 'YAML', to: 'route', at: 'traffic_policy', body: { value: pick(random, yaml) } }),
    () => ({
      what: 'policy as text',
      to: 'route',
      at: 'traffic_policy',
      body: { value: fit(JSON.stringify(policy(random)), 500 * KIB) },
    }),
    () => ({ what: 'JSON', to: 'raw', at: pick(random, paths), body: pick(random, json)() }),
    () => ({ what: 'a bind', to: 'bind', at: '', body: bind(random) }),
    () => ({
      what: 'an edge',
      to: 'edge',
      at: '',
      body: { user_agent_filter: filter(random), request_headers: headers(random) },
    }),
  ]
  for (;;) yield pick(random, kinds)()
}

const headers = (random: Random) => ({
  add: Object.fromEntries(
    Array.from({ length: 1 + random(100) }, (_, i) => [`x${i}`, pick(random, templates)(random, 4000)]),
  ),
})

function pick<T>(random: Random, from: readonly T[]): T {
  return from[random(from.length)] as T // never empty
}
