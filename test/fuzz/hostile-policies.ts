/** Policies with much to do, and requests that make them do it: the same for the same seed. */
import type { GivenRule } from '../../src/modules/policy/testing/test-policy.ts'
import type { Random } from './hostile-documents.ts'
import { hostileExpression } from './hostile-expressions.ts'
import { typedExpression } from './typed-expressions.ts'

export interface HostilePolicy {
  readonly inbound: readonly GivenRule[]
  readonly outbound: readonly GivenRule[]
}

/** A request as plain data. */
export interface HostileRequest {
  readonly path: string
  readonly query: string
  readonly headers: Readonly<Record<string, string | readonly string[]>>
  readonly body: string
}

type Action = GivenRule['actions'][number]

const any = <T>(random: Random, of: readonly T[]): T => of[random(of.length)] as T // within its length

/** Small numbers mostly, and sometimes one near `most`. */
const size = (random: Random, most: number): number => 1 + random(any(random, [10, most / 10 + 1, most]) | 0)

const repeat = (random: Random, text: string, most: number): string => text.repeat(size(random, most / text.length))

function expression(random: Random): string {
  return random(3) === 0 ? hostileExpression(random) : typedExpression(random, 'bool')
}

/** A setting with some `${…}`. */
function template(random: Random): string {
  const kind = any(random, ['string', 'string', 'list', 'map', 'int'] as const)
  const piece = `\${${typedExpression(random, kind)}}`
  return any(random, [
    piece,
    `${piece} and ${piece}`,
    repeat(random, 'abc ', 3000),
    `\${vars.a}\${vars.a}`,
    `\${req.url}`,
  ])
}

const patterns = [
  'a',
  '/',
  '.',
  '(.*)',
  '[ab]*',
  '(a|b|ab)+',
  '[a-z]{1,20}x',
  '(?i)\\pL{3}',
  '\\w+',
  '(a)(b)?',
  '$',
  '^',
]
const replacements = ['', 'x', '$1', '$0$0', '${1}-$$', 'ab', '/']

const replacement = (random: Random): Record<string, unknown> => ({
  from: random(8) === 0 ? `\${${typedExpression(random, 'string')}}` : any(random, patterns),
  to: random(4) === 0 ? template(random) : repeat(random, any(random, replacements) || 'y', 200),
})

export const TOKEN_HEADERS = ['x-token-1', 'x-token-2', 'x-token-3', 'x-token-4', 'x-token-5']

const actions: Readonly<Record<string, (random: Random) => Record<string, unknown>>> = {
  'add-headers': (random) => ({ headers: { a: template(random), b: template(random) } }),
  'basic-auth': (random) => ({
    credentials: Array.from({ length: 1 + random(10) }, (_, i) => `user${i}:password${i}`),
    enforce: false,
  }),
  'circuit-breaker': () => ({ enforce: false }),
  'compress-response': () => ({}),
  'custom-response': (random) => ({ body: template(random), headers: { a: template(random) } }),
  deny: () => ({}),
  'http-request': (random) => ({
    url: `https://service.example/?q=${random(3) === 0 ? '${req.url.query}' : 'a'}`,
    method: 'POST',
    body: template(random),
    headers: { a: template(random) },
    ...(random(2) === 0 && { retry_condition: 'attempts < 3' }),
  }),
  'jwt-validation': (random) => ({
    issuer: { allow_list: [{ value: 'https://id.example' }] },
    http: {
      tokens: TOKEN_HEADERS.slice(0, 1 + random(5)).map((name) => ({ type: 'jwt', method: 'header', name })),
    },
    jws: {
      allowed_algorithms: ['ES256', 'ES512', 'RS256'],
      keys: { sources: { additional_jkus: [any(random, ['https://id.example/one', 'https://id.example/many'])] } },
    },
  }),
  log: (random) => ({ metadata: { a: template(random), b: [template(random)] } }),
  'rate-limit': (random) => ({
    ...{ name: 'limit', capacity: 1_000_000_000, rate: '60s', enforce: false },
    bucket_key: Array.from({ length: 1 + random(10) }, () => typedExpression(random, 'string')),
  }),
  redirect: (random) => replacement(random),
  'remove-headers': (random) => ({ headers: Array.from({ length: 1 + random(10) }, (_, i) => `x-${i * 7}`) }),
  'restrict-ips': (random) => ({
    allow: Array.from({ length: size(random, 1000) }, (_, i) => `10.${i >> 8}.${i & 255}.0/24`),
    enforce: false,
  }),
  'set-vars': (random) => ({
    vars: [{ a: any(random, [template(random), '${vars.a + vars.a}', '${vars.a}${vars.a}', '${vars.a}']) }],
  }),
  'url-rewrite': (random) => replacement(random),
  'verify-webhook': (random) => ({
    provider: any(random, ['github', 'stripe', 'twilio', 'mailgun', 'slack', 'hubspot', 'docusign', 'shopify']),
    secret: `secret ${random(5)}`,
    enforce: false,
  }),
}

/** What can be called in rules for responses. */
const forResponses = ['add-headers', 'remove-headers', 'set-vars', 'log', 'restrict-ips', 'custom-response']

/** Actions after which no other runs; they come last. */
const ending = new Set(['custom-response', 'deny', 'redirect'])

function rule(random: Random, names: readonly string[]): GivenRule {
  const name = any(random, names)
  const make = (): Action => ({ type: name, config: actions[name]?.(random) ?? {} })
  const same = make()
  // The same again and again, or each anew.
  const count = ending.has(name) ? 1 : size(random, 20)
  const isSame = random(2) === 0
  return {
    // A rule that always ends its phase may not be followed by others.
    expressions: Array.from(
      { length: random(4) + (ending.has(name) ? 1 : 0) },
      () => `${expression(random)} || req.version != ''`,
    ),
    actions: Array.from({ length: count }, () => (isSame ? same : make())),
  }
}

export function hostilePolicy(random: Random): HostilePolicy {
  const rules = (names: readonly string[], most: number): GivenRule[] =>
    Array.from({ length: size(random, most) }, () => rule(random, names))
  const start: GivenRule = { actions: [{ type: 'set-vars', config: { vars: [{ a: repeat(random, 'ab', 4000) }] } }] }
  const names = Object.keys(actions)
  const early = names.filter((name) => !ending.has(name))
  // Most have rules of few kinds, so that the price of one is not lost among the others.
  const kinds = random(2) === 0 ? early : Array.from({ length: 1 + random(2) }, () => any(random, early))
  return {
    inbound: [start, ...rules(kinds, 12), ...(random(2) === 0 ? rules(names, 1) : [])],
    outbound: random(3) === 0 ? rules(forResponses, 6) : [],
  }
}

const texts = ['a', 'ab', '/', '%20', 'é', '%C3%A9', '"', '{"a":1},', 'a=1&', '[', '1', ' x', '😀']
const signatures = {
  'x-hub-signature-256': `sha256=${'0'.repeat(64)}`,
  'stripe-signature': `t=0,v1=${'0'.repeat(64)}`,
  'x-twilio-signature': `${'0'.repeat(27)}=`,
  'x-slack-signature': `v0=${'0'.repeat(64)}`,
  'x-slack-request-timestamp': '0',
  'x-hubspot-signature-v3': `${'0'.repeat(43)}=`,
  'x-hubspot-request-timestamp': '0',
  'x-docusign-signature-1': `${'0'.repeat(43)}=`,
  'x-shopify-hmac-sha256': `${'0'.repeat(43)}=`,
}

/** Nearly as much as a visitor may send; `tokens` are of issuers that policies trust. */
export function hostileRequest(random: Random, tokens: readonly string[]): HostileRequest {
  const text = (most: number): string => repeat(random, any(random, texts), most)
  const ascii = (most: number): string => text(most).replace(/[^ -~]/g, 'u')
  const token = any(random, tokens)
  const form = random(4) === 0
  return {
    path: `/${ascii(8000).replace(/[ "{}[\]/%]/g, 'p')}`,
    query: ascii(30_000).replaceAll(' ', '+').split('&', 100).join('&'),
    headers: {
      ...Object.fromEntries(Array.from({ length: size(random, 70) }, (_, i) => [`x-${i}`, text(500)])),
      'x-long': text(16_000),
      'x-json': `[${'{"a":[1,2,{"b":"c"}]},'.repeat(size(random, 500))}1]`,
      'user-agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0',
      cookie: Array.from({ length: size(random, 150) }, (_, i) => `c${i}=${i}`).join('; '),
      authorization: 'Basic dXNlcjE6cGFzc3dvcmQy',
      'content-type': form ? 'application/x-www-form-urlencoded' : 'application/json',
      ...signatures,
      ...Object.fromEntries(TOKEN_HEADERS.map((name) => [name, token])),
    },
    // Short: what is hashed and searched of a body has a price of its own (D102), so that the largest webhook passes.
    body: form
      ? `${'timestamp=0&a=%20b&'.repeat(size(random, 50))}x=1`
      : `{"list":[${'{"name":"a \\"b\\"","n":1},'.repeat(size(random, 40))}1],"signature":{"timestamp":"0"}}`,
  }
}
