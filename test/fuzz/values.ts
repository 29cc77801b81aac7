/** Values to send: some that fit a schema and its field, and some that are hostile. */
import { generateKeyPairSync } from 'node:crypto'
import fc from 'fast-check'
import { EXAMPLE_ROOT, LEAF, OTHER_ROOT } from '../conformance/certificates.ts'
import { IDP_METADATA } from '../conformance/idp-metadata.ts'
import { tlsPair } from '../conformance/tls-pair.ts'
import type { DocumentSchema } from './document.ts'

/** Stands for an id that exists when the call is sent; the number picks which. */
export const PLACEHOLDER = /@id\((\w+),(\d+)\)/g

export function existing(...prefixes: readonly string[]): fc.Arbitrary<string> {
  return fc.tuple(fc.constantFrom(...prefixes), fc.nat(10_000)).map(([prefix, n]) => `@id(${prefix},${n})`)
}

/** A template that policy actions fill in when traffic flows. */
const TEMPLATE = `$\{conn.client_ip}`

const words = fc.constantFrom(
  '',
  'a',
  'web',
  'größe',
  '例え',
  '😀',
  'two words',
  '"quoted"',
  "it's",
  '\\',
  '\t',
  TEMPLATE,
)
const number = fc.nat(5000)

const few = <T>(item: fc.Arbitrary<T>): fc.Arbitrary<T[]> => fc.array(item, { maxLength: 2 })

function mostly<T>(good: readonly T[], bad: readonly T[]): fc.Arbitrary<T> {
  const [usual, strange] = [fc.constantFrom(...good), fc.constantFrom(...bad)]
  return fc.oneof({ weight: 12, arbitrary: usual }, { weight: 1, arbitrary: strange })
}

const BACKENDS = ['bkdtg_', 'bkdhr_', 'bkdwd_', 'bkdfo_', 'bkdsc_']

/** Values by field name, for fields whose schema alone would hardly ever give an accepted value. */
const byName: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  owner_id: existing('bot_'),
  edge_id: existing('edghts_'),
  backend_id: existing(...BACKENDS),
  address: mostly(['db.example.com:5432', '192.0.2.1:80', '[2001:db8::1]:1'], ['db', '*.db:80', '1.2.3:80', 'a:0']),
  certificate_pem: mostly([tlsPair.certificate_pem], [LEAF, EXAMPLE_ROOT.slice(9), tlsPair.certificate_pem + LEAF]),
  private_key_pem: mostly([tlsPair.private_key_pem], [tlsPair.private_key_pem.slice(0, -50), EXAMPLE_ROOT]),
  certificate_id: existing('cert_'),
  domain: number.map((n) => `${n % 3 ? '' : '*.'}name-${n}.example.com`),
  region: mostly(['us', 'local', ''], ['mars']),
  ip_policy_id: existing('ipp_'),
  ip_policy_ids: few(existing('ipp_')),
  certificate_authority_ids: few(existing('ca_')),
  ssh_certificate_authority_id: existing('sshca_'),
  // Without `rsa`, since such a key takes a second to make.
  private_key_type: mostly(['ecdsa', 'ed25519'], ['dsa', '']),
  principals: few(fc.oneof(mostly(['root', 'größe'], ['', 'sshcr_x']), existing('sshcr_'))),
  valid_after: mostly(['2026-01-01T00:00:00Z', '2026-01-01T00:00:00.5+02:00'], ['tomorrow', '1900-01-01T00:00:00Z']),
  valid_until: mostly(['2036-01-01T00:00:00Z'], ['2001-01-01T00:00:00Z', '9999-12-31T23:59:59-23:59', '0']),
  critical_options: fc.dictionary(
    mostly(['force-command', 'source-address', 'x@y'], ['']),
    mostly(['10.0.0.0/8,::1', '127.0.0.1'], ['', '10.0.0.1/8', ' ']),
  ),
  extensions: fc.dictionary(mostly(['permit-pty', 'a@b'], ['', '__proto__']), mostly(['', 'x'], ['\u0001'])),
  acl: few(mostly(['*', 'bind:a.example.com', 'bind:*.b.com', 'bind:k=v', 'bind:*=v'], ['nonsense', 'bind:', '**'])),
  public_key: fc.nat(400).map((n) => sshKey(n)),
  ca_pem: mostly([EXAMPLE_ROOT, OTHER_ROOT, EXAMPLE_ROOT + OTHER_ROOT], [LEAF, EXAMPLE_ROOT.slice(9)]),
  hostports: few(
    fc.oneof(
      number.map((n) => `name-${n}.example.com:443`),
      number.map((n) => `*.w${n}.example.com:443`),
      fc.nat(1100).map((n) => `tcp.example.com:${20_000 + n}`),
    ),
  ),
  cidr: fc.oneof(
    number.map((n) => `10.${n >> 8}.${n & 255}.0/24`),
    number.map((n) => `2001:db8:${n.toString(16)}::/48`),
  ),
  match: number.map((n) => `/path/${n}`),
  name: number.map((n) => `name ${n}`),
  labels: fc.dictionary(fc.constantFrom('app', 'env', 'größe'), mostly(['web', 'x'], ['', '=']), { minKeys: 1 }),
  headers: fc.dictionary(mostly(['x-a', 'X-B', 'cache-control'], ['te', 'a b']), mostly(['1', ''], ['a\nb'])),
  add: fc.dictionary(mostly(['x-a', 'x-b', 'host'], ['X-A', 'postern-x']), mostly(['1', TEMPLATE], ['\r\n'])),
  remove: few(mostly(['x-a', 'X-C', 'cookie'], ['host', 'connection'])),
  allow: few(mostly(['', '(?i)bot', '(a+)+$', '^x?$'], ['[ab]*a[ab]{900}c', '(?=x)', '((((', '\\pL{1000}'])),
  deny: few(mostly(['curl', '.*', '^$', '(a|b|ab)*c'], ['\\1', '[', 'x{1001}', '(?P<a>x)(?P<a>y)'])),
  issuer: mostly(['https://id.example.com', 'http://127.0.0.1:9'], ['https://a:b@c', 'javascript:1', 'http://x']),
  client_id: mostly(['client'], ['']),
  client_secret: mostly(['hush'], ['']),
  scopes: few(mostly(['openid', 'email'], ['two words'])),
  email_addresses: few(mostly(['ada@example.com', 'bob@example.org'], ['Ada@example.com', '@', 'a'])),
  email_domains: few(mostly(['example.com', 'example.org'], ['@example.com', '*.example.com', 'größe'])),
  teams: few(mostly(['acme/web', '42'], ['acme', '/'])),
  organizations: few(mostly(['acme', 'Other'], ['a/b', ''])),
  groups: few(mostly(['web@example.com', 'all@example.org'], ['web'])),
  idp_metadata: mostly(
    [IDP_METADATA, IDP_METADATA.replaceAll('md:', 'x:').replace('xmlns:md', 'xmlns:x')],
    [
      '',
      '<a>',
      `<!DOCTYPE a [<!ENTITY b "${'c'.repeat(1000)}">]>${IDP_METADATA}`,
      IDP_METADATA.replace('entityID', 'entityid'),
      IDP_METADATA.replaceAll('IDPSSO', 'SPSSO'),
      IDP_METADATA.slice(0, -3),
      '<a>'.repeat(20_000),
      `<a>${'&'.repeat(100_000)}</a>`,
    ],
  ),
  cookie_prefix: mostly(['', 'my.'], ['no spaces']),
  expressions: few(
    mostly(
      ['true', "conn.client_ip == '10.0.0.1'", "'a'.matches('(a+)+$')"],
      [
        "req.url.path.startsWith('/x')",
        '1 +',
        '[1,2,3].map(x, [1,2,3].map(y, x * y)).size() > 2',
        `${'('.repeat(500)}true${')'.repeat(500)}`,
        `true${' && true'.repeat(400)}`,
        `${'['.repeat(1000)}`,
        'nobody.knows',
      ],
    ),
  ),
  actions: fc.array(
    mostly<unknown>(
      [
        { type: 'deny' },
        { type: 'log', config: { metadata: { a: 'b' } } },
        { type: 'restrict-ips', config: { enforce: true, allow: ['10.0.0.0/8'] } },
      ],
      [
        { type: 'custom-response', config: { status_code: 200, body: 'hi' } },
        { type: 'add-headers', config: { headers: { 'x-a': TEMPLATE } } },
        { type: 'rate-limit', config: { name: 'a', algorithm: 'sliding_window', capacity: 1, rate: '60s' } },
        { type: 'url-rewrite', config: { from: '/a(.*)', to: '/b$1' } },
        { type: 'constructor', config: {} },
      ],
    ),
    { minLength: 1, maxLength: 2 },
  ),
  outbound: fc.constant([]),
  value: mostly(
    ['{}', 'inbound: []', 'inbound:\n- actions: {type: deny}', '{"inbound":[{"actions":[{"type":"deny"}]}]}'],
    ['on_tcp_connect: []', 'on_http_request: []', 'a: &a [*a]', '['.repeat(9000), 'x: !!js y', '"\\0"', '%TAG ! !\n'],
  ),
}

/** Weights of backends; keys may be placeholders too. */
const weights = fc.dictionary(existing(...BACKENDS), mostly([0, 1, 10_000], [-1, 10_001]), { maxKeys: 3 })

/** Values that mostly fit `schema`, for the field `name`. */
export function fitting(schema: DocumentSchema, name = ''): fc.Arbitrary<unknown> {
  const types = [schema.type ?? []].flat()
  if (types.includes('null')) return orNull(fitting({ ...schema, type: types[0] ?? '' }, name))
  if (name === 'backends') return types.includes('array') ? few(existing(...BACKENDS)) : weights
  if (name === 'provider' && schema.properties) return oneProvider(schema.properties)
  const special = Object.hasOwn(byName, name) ? byName[name] : undefined
  if (special) return special
  if (schema.enum) return fc.constantFrom(...schema.enum)
  switch (types[0]) {
    case 'string':
      return fc.oneof(
        { weight: 9, arbitrary: words },
        { weight: 1, arbitrary: nearLimit(schema['x-max-bytes'] ?? 100) },
      )
    case 'boolean':
      return fc.boolean()
    case 'integer':
    case 'number':
      return fc.integer({ min: (schema.minimum ?? 0) - 1, max: Math.min(schema.maximum ?? 1000, 100_000) + 1 })
    case 'array':
      return fc.array(fitting(schema.items ?? {}), { maxLength: 2 })
    case 'object':
      return object(schema)
    case undefined:
      return hostile
    default:
      throw new Error(`no values are known for the type ${types[0]}`)
  }
}

/** Sometimes null, which counts as omitted. */
function orNull(value: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  return fc.oneof({ weight: 20, arbitrary: value }, { weight: 1, arbitrary: fc.constant(null) })
}

/** Usually one of the providers of `oauth`. */
function oneProvider(providers: Readonly<Record<string, DocumentSchema>>): fc.Arbitrary<unknown> {
  const each = Object.entries(providers).map(([name, node]) => fitting(node).map((settings) => ({ [name]: settings })))
  return fc.oneof(
    { weight: 12, arbitrary: fc.oneof(...each) },
    { weight: 1, arbitrary: object({ properties: providers }) },
  )
}

/** The required fields and a few others; only sometimes all, since some value is then likely to be refused. */
function object({ properties, required = [] }: DocumentSchema): fc.Arbitrary<unknown> {
  if (!properties) return fc.dictionary(words, words, { maxKeys: 2 })
  const fields = new Map(Object.entries(properties).map(([name, node]) => [name, fitting(node, name)]))
  const optional = [...fields.keys()].filter(
    (name) => !required.includes(name) || properties[name]?.default !== undefined,
  )
  const needed = [...fields.keys()].filter((name) => !optional.includes(name))
  const few = fc.subarray(optional, { maxLength: Math.min(3, optional.length) })
  // One of two fields names a reserved domain, so neither is required, and both together are refused.
  const plain = fields.has('domain')
    ? few.map((some) => [...new Set(['domain', ...some])].filter((each) => each !== 'name'))
    : few
  return fc
    .oneof({ weight: 3, arbitrary: plain }, { weight: 1, arbitrary: fc.constant(optional) })
    .chain((some) =>
      fc.tuple(...[...needed, ...some].map((name) => fc.tuple(fc.constant(name), fields.get(name) ?? words))),
    )
    .map((pairs) => Object.fromEntries(pairs))
}

/** A text of exactly `limit` bytes, or one more or less. */
function nearLimit(limit: number): fc.Arbitrary<string> {
  return fc
    .tuple(fc.constantFrom(-1, 0, 1), fc.constantFrom('a', 'é', '😀'))
    .map(([more, unit]) => unit.repeat(Math.ceil((limit + more) / Buffer.byteLength(unit))))
}

/** Hostile values. They are functions, so that long ones are made only when used. */
export const hostile: fc.Arbitrary<unknown> = fc
  .constantFrom<() => unknown>(
    ...[null, true, false, 0, -0, -1, 1.5, 2 ** 31, 2 ** 53, 1e308, '', ' ', '0', 'null', '\0', 'a\0b', '\ud800'].map(
      (value) => () => value,
    ),
    ...['__proto__', 'constructor', '\u202e\u2066', '\ufeff', '\r\nx: y', "' OR 1=1; --", '../../etc/passwd'].map(
      (value) => () => value,
    ),
    ...['%00', '<script>', TEMPLATE, '{{7*7}}', 'e\u0301'.repeat(200), '\uffff'].map((value) => () => value),
    () => [],
    () => ({}),
    () => [[[]]],
    () => 'x'.repeat(70_000),
    () => '😀'.repeat(2000),
    () => Array.from({ length: 2000 }, (_, i) => i),
    () => Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`key${i}`, ''])),
    () => JSON.parse('{"__proto__":{"admin":true}}'),
    () => JSON.parse('{"constructor":{"prototype":{"admin":true}}}'),
    () => JSON.parse(`${'['.repeat(40)}${']'.repeat(40)}`),
    () => JSON.parse(`${'{"a":'.repeat(30)}1${'}'.repeat(30)}`),
    () => ({ toString: 'x', valueOf: 1, length: 10 }),
    () => ({ id: 'x', uri: 'y' }),
  )
  .map((make) => make())

function sshKey(n: number): string {
  const made = sshKeys[n] ?? generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'pem' }).toString()
  sshKeys[n] = made
  return made
}

// Kept so that a key is sent again, which is a conflict.
const sshKeys: string[] = []
