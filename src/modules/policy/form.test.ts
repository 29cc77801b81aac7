// biome-ignore-all lint/suspicious/noTemplateCurlyInString: policies write their placeholders like this
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { check } from '../../lib/shape/check.ts'
import { policy, policyMentions } from './form.ts'

function put(body: unknown, place: keyof typeof policy.at = 'route') {
  assert.ok(policy.accept)
  return policy.accept(check(policy.at[place], body), { place, at: 'policy.' })
}

/** A body of one rule with these actions. */
const inbound = (...actions: unknown[]) => ({ inbound: [{ actions }] })
const outbound = (...actions: unknown[]) => ({ outbound: [{ actions }] })
const log = { type: 'log', config: { metadata: { a: 'b' } } }
const deny = { type: 'deny' }

function refuses(body: unknown, place: keyof typeof policy.at, ...parts: readonly (string | RegExp)[]): void {
  assert.throws(
    () => put(body, place),
    (error) => {
      assert.ok(error instanceof Error && (error.name === 'Refusal' || error.name === 'BadValue'), String(error))
      for (const part of parts) assert.match(error.message, typeof part === 'string' ? literally(part) : part)
      return true
    },
  )
}

function literally(text: string): RegExp {
  return new RegExp(text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
}

test('fills in defaults, keeps settings as sent, and leaves unset lists unset', () => {
  assert.deepEqual(put({ inbound: [{ actions: [deny] }] }), {
    enabled: true,
    inbound: [{ name: '', expressions: [], actions: [{ type: 'deny' }] }],
  })
  assert.deepEqual(put({}), { enabled: true })
})

test('a single rule or action is a list of one (D16)', () => {
  const many = put({ inbound: [{ actions: [log] }], outbound: [{ actions: [log] }] })
  assert.deepEqual(put({ inbound: { actions: log }, outbound: { actions: log } }), many)
})

const jwt = {
  issuer: { allow_list: [{ value: 'https://id.example' }] },
  http: { tokens: [{ type: 'jwt', method: 'header', name: 'Authorization', prefix: 'Bearer ' }] },
  jws: {
    allowed_algorithms: ['ES256'],
    keys: { sources: { additional_jkus: ['https://id.example/keys', 'http://127.0.0.1:1/keys'] } },
  },
}
const limit = { name: 'a', capacity: 10, rate: '60s', bucket_key: ['conn.client_ip', "req.headers['x'][0]"] }

const working: readonly (readonly [string, object?])[] = [
  ['add-headers', { headers: { 'X-A': 'a ${conn.client_ip} b', Host: 'inner' } }],
  ['basic-auth', { credentials: ['user:long password: x'], realm: 'shop' }],
  ['circuit-breaker', { error_threshold: 0.1, window_duration: '2m', tripped_duration: '1h30m' }],
  ['circuit-breaker'],
  ['close-connection'],
  ['compress-response', { algorithms: ['br'] }],
  ['compress-response'],
  ['custom-response', { status_code: 404, content: 'no ${req.url.path}', headers: { 'content-type': 'text/plain' } }],
  ['custom-response', { body: '${ {"a}": 1}["a}"] } and $5' }],
  ['deny', { status_code: 999 }],
  ['jwt-validation', jwt],
  ['log', { metadata: { a: { b: ['${req.method}'] }, n: 1 } }],
  ['rate-limit', limit],
  ['rate-limit', { ...limit, rate: '24h', algorithm: 'sliding_window', enforce: false }],
  ['redirect', { from: '^http://(.*)', to: 'https://$1', status_code: 308 }],
  ['redirect', { to: 'https://example.com/${req.method.lower()}' }],
  ['remove-headers', { headers: ['X-A'] }],
  ['restrict-ips', { allow: ['10.0.0.0/8', '::/0'], deny: ['10.1.0.0/16'], ip_policies: ['ipp_1'] }],
  ['set-vars', { vars: [{ a: '${req.method}' }, { b: [1, true] }] }],
  ['url-rewrite', { from: '/v1/${req.method}/', to: '/$1' }],
  ['verify-webhook', { provider: 'github', secret: '${ is no expression here' }],
]

for (const [type, config] of working) {
  test(`accepts ${type} ${JSON.stringify(config ?? null)}`, () => {
    put(inbound({ type, config }))
    put({ ...inbound({ type, config: config ?? null }), enabled: false })
  })
}

const broken: readonly (readonly [string, object | undefined, string, RegExp])[] = [
  ['add-headers', undefined, '.headers', /is required/],
  ['add-headers', { headers: {} }, '.headers', /at least 1/],
  ['add-headers', { headers: { 'user-agent': 'x' } }, '.headers["user-agent"]', /cannot be changed/],
  ['add-headers', { headers: { 'Content-Length': '1' } }, '.headers["Content-Length"]', /belongs to the connection/],
  ['add-headers', { headers: { 'postern-auth-user-id': '1' } }, '.headers["postern-auth-user-id"]', /postern-/],
  ['add-headers', { headers: { 'a b': '1' } }, '.headers["a b"]', /not a header name/],
  ['add-headers', { headers: { a: 'x\r\nb: c' } }, '.headers["a"]', /line break/],
  ['add-headers', { headers: { a: '1', A: '2' } }, '.headers["A"]', /same header/],
  ['add-headers', { headers: { a: '${conn.client_up}' } }, '.headers["a"]', /did you mean `client_ip`/],
  ['add-headers', { headers: { a: 'x ${conn.client_ip' } }, '.headers["a"]', /`\$\{` at column 3 that is not closed/],
  ['basic-auth', { credentials: ['hunter2'] }, '.credentials[0]', /must be `user:password`/],
  ['basic-auth', { credentials: ['a:hunter2'] }, '.credentials[0]', /8 to 128 bytes/],
  ['circuit-breaker', { window_duration: '3m' }, '.window_duration', /between `1s` and `2m`/],
  ['circuit-breaker', { error_threshold: 2 }, '.error_threshold', /between 0 and 1/],
  ['close-connection', { status_code: 1 }, '.status_code', /no fields are accepted here/],
  ['compress-response', { algorithms: ['zip'] }, '.algorithms[0]', /must be one of `gzip`/],
  ['custom-response', { body: 'a', content: 'b' }, '.content', /keep `body` only/],
  ['custom-response', { status_code: 199 }, '.status_code', /between 200 and 599/],
  ['custom-response', { bdy: 'a' }, '.bdy', /did you mean `body`/],
  ['deny', { status_code: 302 }, '.status_code', /between 400 and 599, or 999/],
  ['deny', { status_code: '403' }, '.status_code', /must be a whole number, not a string/],
  ['jwt-validation', {}, '.issuer', /is required/],
  [
    'jwt-validation',
    { ...jwt, jws: { ...jwt.jws, allowed_algorithms: ['none'] } },
    '.jws.allowed_algorithms[0]',
    /one of/,
  ],
  ['log', undefined, '.metadata', /is required/],
  ['log', { metadata: { a: { b: ['${nope}'] } } }, '.metadata["a"]["b"][0]', /unknown variable, `nope`/],
  ['rate-limit', { ...limit, rate: '61s' }, '.rate', /between `60s` and `24h` and a multiple of `10s`/],
  ['rate-limit', { ...limit, rate: '25h' }, '.rate', /between/],
  ['rate-limit', { ...limit, rate: 'soon' }, '.rate', /such as `90s`/],
  ['rate-limit', { ...limit, capacity: 0 }, '.capacity', /between 1 and/],
  ['rate-limit', { ...limit, bucket_key: ['conn.client_ip', 'x'] }, '.bucket_key[1]', /unknown variable/],
  ['redirect', { from: '(', to: 'a' }, '.from', /not a valid RE2/],
  ['redirect', { from: `(?:${'a'.repeat(1000)}){1000}`, to: 'a' }, '.from', /too costly/],
  ['redirect', { to: 'a', status_code: 200 }, '.status_code', /between 300 and 399/],
  ['remove-headers', { headers: ['a', 'Connection'] }, '.headers[1]', /belongs to the connection/],
  ['restrict-ips', undefined, '', /needs `allow`, `deny` or `ip_policies`/],
  ['restrict-ips', { allow: ['10.0.0.1/8'] }, '.allow[0]', /write `10\.0\.0\.0\/8`/],
  ['restrict-ips', { ip_policies: ['ak_1'] }, '.ip_policies[0]', /must match \^ipp_/],
  ['set-vars', { vars: [{ a: 1 }, { b: 1, c: 2 }] }, '.vars[1]', /at most 1/],
  ['set-vars', { vars: [{ 'a-b': 1 }] }, '.vars[0]', /letters, digits/],
  ['url-rewrite', { from: 'a' }, '.to', /is required/],
  ['verify-webhook', { provider: 'githup', secret: 's' }, '.provider', /must be one of `aftership`/],
]

for (const [type, config, field, reason] of broken) {
  test(`refuses ${type} ${JSON.stringify(config ?? null).slice(0, 80)}`, () => {
    refuses(inbound(log, { type, config }), 'route', `\`policy.inbound[0].actions[1].config${field}\``, reason)
  })
}

test('no message repeats a secret', () => {
  const credentials = ['user:hunter2']
  assert.throws(
    () => put(inbound({ type: 'basic-auth', config: { credentials } })),
    (error) => !/hunter2/.test(String(error)),
  )
})

test('names the action that was probably meant', () => {
  refuses(
    inbound({ type: 'add-header' }),
    'route',
    '`policy.inbound[0].actions[0].type`',
    'did you mean `add-headers`?',
  )
  refuses(inbound({ type: 'denny' }), 'tcp', 'did you mean `deny`?')
  refuses(inbound({ type: '__proto__' }), 'tls', 'a TLS edge has `close-connection`, `deny`, `log`, `restrict-ips`')
})

test('says what to use instead of an unsupported action', () => {
  const forward = { type: 'forward-internal', config: { url: 'https://a.internal' } }
  for (const place of ['route', 'tcp', 'tls'] as const) {
    refuses(
      inbound(log, forward),
      place,
      '`policy.inbound[0].actions[1].type` is `forward-internal`, which is not supported',
      'give the edge or route a `backend`',
    )
  }
  refuses(inbound({ type: 'terminate-tls' }), 'tls', 'set the module `tls_termination`')
})

test('refuses an action in a phase or place where it cannot run', () => {
  refuses(outbound(deny), 'route', '`policy.outbound[0].actions[0].type` is `deny`', 'works in `inbound` only')
  for (const place of ['tcp', 'tls'] as const) {
    refuses(
      inbound({ type: 'redirect', config: { to: 'a' } }),
      place,
      'needs HTTP',
      '`close-connection`, `deny`, `log`',
    )
    refuses(outbound(log), place, '`policy.outbound` takes no rules', 'use `inbound`')
    put({ outbound: [] }, place)
    for (const type of ['deny', 'close-connection']) put(inbound(log, { type }), place)
    put(inbound({ type: 'restrict-ips', config: { allow: ['::/0'] } }), place)
  }
})

test('refuses actions that are never reached', () => {
  refuses(
    inbound(deny, log),
    'route',
    '`policy.inbound[0].actions[1]` is never reached',
    '`policy.inbound[0].actions[0]`',
  )
  const first = { actions: [log, { type: 'custom-response' }] }
  refuses({ inbound: [first, { actions: [log] }] }, 'route', '`policy.inbound[1].actions[0]` is never reached')
  put({
    inbound: [{ ...first, expressions: ["req.method == 'GET'"] }, { actions: [log] }],
    outbound: [{ actions: [log] }],
  })
})

test('checks expressions for the place and phase where they run', () => {
  const rule = { expressions: ['true', 'res.status_code == 200'], actions: [log] }
  put({ outbound: rule })
  refuses({ inbound: rule }, 'route', '`policy.inbound[0].expressions[1]`', 'move the rule to `outbound`')
  refuses({ inbound: rule }, 'tls', '`policy.inbound[0].expressions[1]`', 'a TLS edge sees connections')
})

test('enforces limits on rules, expressions, actions and names', () => {
  const many = (n: number, one: unknown) => Array.from({ length: n }, () => one)
  put({ inbound: many(100, { actions: many(20, log), expressions: many(20, 'true') }) })
  refuses({ inbound: many(101, { actions: [log] }) }, 'route', '`inbound` has 101 entries')
  refuses({ inbound: [{ actions: many(21, log) }] }, 'route', '`inbound[0].actions` has 21 entries')
  refuses({ inbound: [{ actions: [] }] }, 'route', '`inbound[0].actions` needs at least 1 entry')
  refuses({ inbound: [{ expressions: many(21, 'true'), actions: [log] }] }, 'route', 'has 21 entries')
  refuses({ inbound: [{ expressions: ['a'.repeat(4097)], actions: [log] }] }, 'route', 'at most 4096')
  refuses({ inbound: [{ name: 'é'.repeat(128), actions: [log] }] }, 'route', 'at most 255')
})

test('refuses expressions and patterns that are too large in total', () => {
  const expressions = Array.from({ length: 20 }, () => `'${'a'.repeat(4000)}' == ''`)
  refuses({ inbound: [{ expressions, actions: [log] }] }, 'route', 'expressions[16]', 'too large in total')
  const rewrite = { type: 'url-rewrite', config: { from: 'a{950}'.repeat(2), to: 'b' } }
  const rules = Array.from({ length: 4 }, () => ({ actions: Array.from({ length: 20 }, () => rewrite) }))
  refuses({ inbound: rules }, 'route', 'inbound[1].actions[14].config.from', 'too large in total')
})

test('refuses a `from` pattern that takes long to compile', () => {
  const rewrite = { type: 'url-rewrite', config: { from: 'a{999}'.repeat(3), to: 'b' } }
  refuses(inbound(rewrite), 'route', 'actions[0].config.from', 'over 2000 instructions')
})

const depths: readonly (readonly [string, 'bytes' | 'plaintext'])[] = [
  ["conn.client_ip == ''", 'bytes'],
  ["conn.tls.sni == ''", 'bytes'],
  ["conn['tls'].sni.endsWith('x')", 'bytes'],
  ["conn.tls.version == ''", 'plaintext'],
  ["conn['tls']['client'].pem == ''", 'plaintext'],
  ['has(conn.tls)', 'plaintext'],
  ["[conn].exists(c, c.tls.version == '')", 'plaintext'],
  ["[1].all(x, conn.tls.client.subject != '')", 'plaintext'],
  ["'x' in .conn.tls.client.san.dns_names", 'plaintext'],
  ["conn // the connection\n  . tls\n  . version == ''", 'plaintext'],
  ["conn['tl\\x73'].version == ''", 'plaintext'],
  ["(conn).tls.version == ''", 'plaintext'],
  ["'conn.tls.version' == conn.client_ip", 'bytes'],
  ['conn.tls.sni.size() > 0 && .conn.tls["sni"] != \'\'', 'bytes'],
  ['[1].all(x, conn.client_port > x)', 'bytes'],
]

for (const [expression, needs] of depths) {
  test(`${expression} needs ${needs}`, () => {
    const rule = { expressions: ['true', expression], actions: [deny] }
    assert.equal(policy.needs(put({ inbound: [{ expressions: ['true'], actions: [log] }, rule] }, 'tls')), needs)
    assert.equal(policy.needs(put({ enabled: false, inbound: rule }, 'tls')), 'bytes')
  })
}

test('what the settings of actions read counts too', () => {
  const metadata = { v: 'TLS ${conn.tls.version}' }
  assert.equal(policy.needs(put(inbound({ type: 'log', config: { metadata } }), 'tls')), 'plaintext')
})

test('finds the IP policies that it names, and where', () => {
  const restrict = (...ip_policies: string[]) => ({ type: 'restrict-ips', config: { ip_policies } })
  const config = put({ ...inbound(restrict('ipp_1', 'ipp_2'), log), outbound: { actions: restrict('ipp_2', 'ipp_3') } })
  assert.deepEqual(
    policyMentions(config).map(({ field, id }) => [field, id]),
    [
      ['inbound[0].actions[0].config.ip_policies[0]', 'ipp_1'],
      ['inbound[0].actions[0].config.ip_policies[1]', 'ipp_2'],
      ['outbound[0].actions[0].config.ip_policies[0]', 'ipp_2'],
      ['outbound[0].actions[0].config.ip_policies[1]', 'ipp_3'],
    ],
  )
  assert.deepEqual(policyMentions(put({})), [])
})

test('every field has a description', () => {
  const walk = (schema: { properties?: object; items?: object }, at: string): void => {
    for (const [name, field] of Object.entries(schema.properties ?? {})) {
      assert.ok(field.description, `${at}.${name}`)
      walk(field.items ?? field, `${at}.${name}`)
    }
  }
  for (const form of Object.values(policy.at)) walk(form, 'policy')
})
