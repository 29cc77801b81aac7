import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { test } from 'node:test'
import { makeIdentity } from '../../../test/support/make-certificate.ts'
import { undivided } from '../../lib/limits/divided-counters.ts'
import { BadValue, check } from '../../lib/shape/check.ts'
import { describedForm } from '../../model/described.ts'
import type { EdgeConfig, EdgeKind, ModuleSettings } from '../../model/edge-config.ts'
import type { Explanation } from '../../model/explanation.ts'
import { visitorErrors } from '../../model/visitor-errors.ts'
import { explain } from './explain.ts'

const service = { kind: 'static', id: 'bkdst_1', host: '192.0.2.9', port: 1, tls: false }
const ROUTE = 'edghtsrt_1'

/** An HTTPS edge of one route. */
function edge(modules: ModuleSettings, own: ModuleSettings = {}): EdgeConfig {
  const route = { id: ROUTE, matchType: 'path_prefix', match: '/', modules: { backend: service, ...modules } } as const
  return { id: 'edghts_1', kind: 'https', names: ['a.test', '*.b.test'], ports: [], modules: own, routes: [route] }
}

function raw(kind: EdgeKind, modules: ModuleSettings): EdgeConfig {
  const names = kind === 'tls' ? ['t.test'] : []
  return {
    id: 'edg_1',
    kind,
    names,
    ports: kind === 'tcp' ? [7000] : [],
    modules: { backend: service, ...modules },
    routes: [],
  }
}

interface Rules {
  readonly inbound?: readonly object[]
  readonly outbound?: readonly object[]
}

function policy({ inbound = [], outbound = [] }: Rules, place = 'route', readsHandshake = false): ModuleSettings {
  const filled = (rules: readonly object[]) => rules.map((rule) => ({ name: '', expressions: [], ...rule }))
  return { policy: { place, inbound: filled(inbound), outbound: filled(outbound), ipPolicies: {}, readsHandshake } }
}

type More = Partial<Omit<Parameters<typeof explain>[0], 'config' | 'asked'>>

function ask(config: EdgeConfig, asked: object, more: More = {}): Promise<Explanation> {
  const around = { region: 'eu', publicHttpsPort: 443, ngrokErrorHeader: true, counters: [], limitPart: undivided }
  return explain({ config, asked: check(describedForm, asked), ...around, ...more })
}

function notesOf({ steps }: Explanation): string[] {
  return steps.map(({ module, phase, outcome }) => `${module} ${phase}: ${outcome}`)
}

async function refused(asking: Promise<unknown>, field: string, message: RegExp): Promise<void> {
  await assert.rejects(asking, (error) => {
    assert.ok(error instanceof BadValue, String(error))
    assert.equal(error.field, field)
    assert.match(error.message, message)
    return true
  })
}

test('lists all modules in the order in which they run, for the request and then for the response', async () => {
  const config = edge({
    response_headers: { add: [['x-out', '1']], remove: [] },
    ip_restriction: { allow: ['0.0.0.0/0'], deny: [] },
    user_agent_filter: { allow: [], deny: ['curl'] },
    ...policy({ inbound: [{ actions: [{ type: 'add-headers', config: { headers: { 'x-in': '1' } } }] }] }),
    request_headers: { add: [['x-up', '${conn.client_ip}']], remove: ['x-gone'] },
  })
  const explanation = await ask(config, {
    request: { url: '/a?b=c', headers: { 'user-agent': 'x', 'X-Gone': '1' } },
    connection: { client_ip: '::ffff:198.51.100.7' },
    response: { status_code: 404, headers: { 'x-service': ['1', '2'], connection: 'close' }, body: 'none' },
  })
  assert.deepEqual(notesOf(explanation), [
    'ip_restriction request: passes',
    'user_agent_filter request: passes',
    'policy request: passes',
    'policy upstream: adds `x-in`',
    'request_headers upstream: adds `x-up`, removes `x-gone`',
    'policy response: passes',
    'response_headers response: adds `x-out`',
  ])
  const { outcome } = explanation
  assert.deepEqual([outcome.verdict, outcome.status_code, outcome.body], ['passes', 404, 'none'])
  assert.deepEqual(outcome.headers, { 'x-service': ['1', '2'], 'x-out': ['1'] })
  assert.equal(outcome.upstream?.url, '/a?b=c')
  assert.deepEqual(outcome.upstream?.headers['x-up'], ['198.51.100.7'])
  assert.deepEqual(outcome.upstream?.headers['x-forwarded-for'], ['198.51.100.7'])
  assert.equal(outcome.upstream?.headers['x-gone'], undefined)
})

test('a module that refuses ends the run, and the outcome is what the visitor sees', async () => {
  const config = edge({
    ip_restriction: { allow: ['10.0.0.0/8'], deny: [] },
    ...policy({ inbound: [{ actions: [{ type: 'deny' }] }] }),
  })
  const { steps, outcome } = await ask(config, { request: { headers: { accept: 'application/json' } } })
  assert.deepEqual(
    steps.map(({ module, outcome }) => [module, outcome]),
    [['ip_restriction', 'refuses with ERR_IP_REFUSED (403)']],
  )
  assert.deepEqual([outcome.verdict, outcome.error_code, outcome.status_code], ['refuses', 'ERR_IP_REFUSED', 403])
  assert.deepEqual(JSON.parse(outcome.body ?? ''), {
    error_code: 'ERR_IP_REFUSED',
    msg: 'Your IP address is not allowed here.',
    request_id: '0'.repeat(32),
  })
})

test('rules that are not reached, that do not apply and that fail can be told apart', async () => {
  const config = edge(
    policy({
      inbound: [
        { name: 'not', expressions: ['true', "req.method == 'PUT'", 'true'], actions: [{ type: 'deny' }] },
        { name: 'fails', expressions: ["req.headers['none'][0] == ''"], actions: [{ type: 'deny' }] },
        {
          name: 'does',
          actions: [
            { type: 'set-vars', config: { vars: [{ a: '${req.method}' }] } },
            { type: 'restrict-ips', config: { deny: ['0.0.0.0/0'], enforce: false } },
            { type: 'url-rewrite', config: { from: '/old/', to: '/new/' } },
            { type: 'remove-headers', config: { headers: ['x-a'] } },
            { type: 'log', config: { metadata: { a: '${vars.a}' } } },
            { type: 'redirect', config: { to: 'https://other.test/?secret=1' } },
          ],
        },
        { name: 'late', actions: [{ type: 'deny' }] },
      ],
    }),
  )
  const { steps, outcome } = await ask(config, { request: { url: '/old/x', headers: { 'x-a': '1' } } })
  const rules = steps[0]?.rules ?? []
  assert.deepEqual(
    rules.map(({ name, matched }) => [name, matched]),
    [
      ['not', false],
      ['fails', false],
      ['does', true],
      ['late', null],
    ],
  )
  assert.deepEqual(
    rules[0]?.expressions.map(({ text, value }) => [text, value]),
    [
      ['true', true],
      ["req.method == 'PUT'", false],
    ],
  )
  assert.match(rules[1]?.expressions[0]?.error ?? '', /none/)
  assert.deepEqual(
    rules[2]?.actions.map(({ outcome: each }) => each),
    [
      'sets `vars.a`',
      'would stop here, but is not enforced',
      'forwards `/new/x`',
      'removes `x-a`',
      'writes to the log',
      'answers 302, to https://other.test/',
    ],
  )
  assert.deepEqual([outcome.verdict, outcome.status_code], ['answers', 302])
})

test('the meter shows what the rules of each phase have cost so far; a spent one refuses', async () => {
  const rule = { expressions: [] as string[], actions: [{ type: 'log', config: { metadata: {} } }] }
  const config = edge({
    ip_restriction: { allow: ['0.0.0.0/0'], deny: [] },
    ...policy({ inbound: [rule], outbound: [rule] }),
  })
  const { steps } = await ask(config, { request: {} })
  const used = (phase: string): number =>
    steps.find((step) => step.module === 'policy' && step.phase === phase)?.meter?.used ?? Number.NaN
  assert.deepEqual([used('request'), used('response')], [1000, 2000])
  assert.equal(steps.find(({ module }) => module === 'ip_restriction')?.meter, null)
  const dear = { ...rule, expressions: ['lists.range(2000).all(a, lists.range(2000).all(b, b >= 0))'] }
  const spent = await ask(edge(policy({ inbound: [dear] })), { request: {} })
  assert.deepEqual([spent.outcome.status_code, spent.outcome.error_code], [503, 'ERR_POLICY_BUDGET_SPENT'])
  assert.deepEqual(spent.steps[0]?.meter, { used: 2_000_000, total: 2_000_000 })
  const late = await ask(edge(policy({ outbound: [dear] })), { request: {} })
  assert.deepEqual([late.outcome.status_code, late.outcome.error_code], [502, 'ERR_POLICY_ANSWER_BUDGET_SPENT'])
  assert.equal(late.outcome.headers['retry-after'], undefined)
})

test('an action that breaks is reported with its reason', async () => {
  const action = { type: 'custom-response', config: { body: "${req.headers['none'][0]}" } }
  const { steps, outcome } = await ask(edge(policy({ inbound: [{ actions: [action] }] })), { request: {} })
  assert.match(steps[0]?.rules[0]?.actions[0]?.outcome ?? '', /^fails: .*none/)
  assert.equal(outcome.error_code, 'ERR_POLICY_FAILED')
})

test('what a policy does to a response is reported, and a response may be replaced', async () => {
  const config = edge(
    policy({
      outbound: [
        {
          expressions: ['res.status_code >= 500'],
          actions: [{ type: 'custom-response', config: { status_code: 503, body: 'later' } }],
        },
        { actions: [{ type: 'compress-response', config: { algorithms: ['gzip'] } }] },
      ],
    }),
  )
  const asked = { request: { headers: { 'accept-encoding': 'gzip' } } }
  const failed = await ask(config, { ...asked, response: { status_code: 500 } })
  assert.deepEqual([failed.outcome.verdict, failed.outcome.status_code, failed.outcome.body], ['answers', 503, 'later'])
  const fine = await ask(config, {
    ...asked,
    response: { headers: { 'content-type': 'text/plain' }, body: 'a'.repeat(5000) },
  })
  assert.deepEqual(fine.outcome.headers['content-encoding'], ['gzip'])
  assert.equal(fine.outcome.body, null)
})

test('a connection that is closed has no answer', async () => {
  const { outcome } = await ask(edge(policy({ inbound: [{ actions: [{ type: 'close-connection' }] }] })), {
    request: {},
  })
  assert.deepEqual([outcome.verdict, outcome.status_code], ['closes', null])
})

const login = { options_passthrough: false, cookie_prefix: '', inactivity_timeout: 0, maximum_duration: 0 }
const oidc = {
  issuer: 'https://id.test',
  client_id: 'client',
  client_secret: 'very-secret-indeed',
  scopes: ['openid'],
  ...login,
}
const github = {
  client_id: 'client',
  client_secret: 'very-secret-indeed',
  scopes: [],
  email_addresses: [],
  email_domains: [],
  teams: [],
  organizations: [],
}

test('nothing is fetched: a login says what it would fetch, or where it would send the visitor', async () => {
  const unknown = await ask(edge({ oidc }), { request: {} })
  assert.deepEqual(notesOf(unknown), [
    'oidc request: would fetch https://id.test/.well-known/openid-configuration to log the visitor in at its provider',
  ])
  assert.equal(unknown.outcome.verdict, 'depends')
  assert.match(unknown.outcome.text, /^oidc would fetch https:\/\/id\.test\//)
  const oauth = { provider: { github }, auth_check_interval: 0, ...login }
  const sent = await ask(edge({ oauth }), { request: {} })
  assert.deepEqual(notesOf(sent), ['oauth request: answers 302, to https://github.com/login/oauth/authorize'])
  assert.match(sent.outcome.headers.location?.[0] ?? '', /^https:\/\/github\.com\/login\/oauth\/authorize\?/)
  assert.deepEqual(sent.outcome.headers['set-cookie'], ['[secret]'])
})

test('the answers of a provider can be described, and so can the user who is logged in', async () => {
  const configuration = {
    issuer: 'https://id.test',
    authorization_endpoint: 'https://id.test/authorize',
    token_endpoint: 'https://id.test/token',
    jwks_uri: 'https://id.test/keys',
    response_types_supported: ['code'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['RS256'],
  }
  const fetches = [
    {
      url: 'https://id.test/.well-known/openid-configuration',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(configuration),
    },
  ]
  const stranger = await ask(edge({ oidc }), { request: {}, fetches })
  assert.deepEqual(notesOf(stranger), ['oidc request: answers 302, to https://id.test/authorize'])
  const user = await ask(edge({ oidc }), { request: {}, login: { id: '7', email: 'a@b.test' } })
  assert.deepEqual(notesOf(user), [
    'oidc request: passes',
    'oidc upstream: adds `postern-auth-user-id`, `postern-auth-user-email`',
  ])
  assert.deepEqual(user.outcome.upstream?.headers['postern-auth-user-email'], ['a@b.test'])
})

test('what depends on a fetch without a described answer is not reported', async () => {
  const rules = [
    { actions: [{ type: 'add-headers', config: { headers: { 'x-a': '1' } } }] },
    { actions: [{ type: 'deny' }] },
  ]
  const unasked = await ask(edge({ oidc, ...policy({ inbound: rules }) }), { request: {} })
  assert.deepEqual(
    unasked.steps.map(({ module }) => module),
    ['oidc'],
  )
  assert.equal(unasked.outcome.upstream, null)
})

test('limits count nothing', async () => {
  const limit = { name: 'one', capacity: 1, rate: '60s', bucket_key: ['conn.client_ip'] }
  const config = edge(policy({ inbound: [{ actions: [{ type: 'rate-limit', config: limit }] }] }))
  const verdicts: string[] = []
  for (let i = 0; i < 3; i++) verdicts.push((await ask(config, { request: {} })).outcome.verdict)
  assert.deepEqual(verdicts, ['passes', 'passes', 'passes'])
})

test('a webhook is verified with the body that is described', async () => {
  const config = edge({ webhook_verification: { provider: 'github', secret: 'the webhook secret' } })
  const body = '{"a":1}'
  const signature = `sha256=${createHmac('sha256', 'the webhook secret').update(body).digest('hex')}`
  const asked = (given: string) => ({
    request: { method: 'POST', body: given, headers: { 'x-hub-signature-256': signature } },
  })
  assert.equal((await ask(config, asked(body))).outcome.verdict, 'passes')
  assert.equal((await ask(config, asked('{"a":2}'))).outcome.error_code, 'ERR_WEBHOOK_REFUSED')
})

test('no secret is repeated, neither of the modules nor of the request', async () => {
  const credentials = ['jane:correct horse']
  const rules = [
    {
      expressions: [
        "req.headers['authorization'][0].startsWith('Basic')",
        "req.headers['x-copy'][0] != 'a' && req.cookies['sid'][0].value.size() > 1",
      ],
      actions: [
        { type: 'basic-auth', config: { credentials } },
        { type: 'custom-response', config: { body: "${req.headers['authorization'][0]} ${req.headers['x-copy'][0]}" } },
      ],
    },
  ]
  const basic = `Basic ${Buffer.from('jane:correct horse').toString('base64')}`
  const config = edge({
    ...policy({ inbound: rules }),
    webhook_verification: { provider: 'gitlab', secret: 'hook-secret' },
  })
  const explanation = await ask(config, {
    request: {
      headers: {
        authorization: basic,
        cookie: 'sid=cookie-value',
        'x-copy': 'cookie-value',
        'x-gitlab-token': 'hook-secret',
      },
    },
  })
  const text = JSON.stringify(explanation)
  assert.equal(explanation.outcome.verdict, 'answers')
  assert.match(text, /\[secret\]/)
  for (const secret of ['correct horse', basic.slice(6), 'cookie-value', 'hook-secret']) {
    assert.ok(!text.includes(secret), `${secret} is in ${text}`)
  }
})

test('a module that cannot be applied lets nothing pass, and the reason is reported', async () => {
  const { outcome } = await ask(edge({ policy: { place: 'route' } }), { request: {} })
  assert.equal(outcome.error_code, 'ERR_MODULE_UNAVAILABLE')
  assert.match(outcome.text, /module policy: /)
})

test('the plain listener sends visitors to TLS', async () => {
  const { outcome } = await ask(edge({}), { request: { url: 'http://a.test/x' } }, { publicHttpsPort: 8443 })
  assert.deepEqual([outcome.status_code, outcome.headers.location], [307, ['https://a.test:8443/x']])
})

test("an error has ngrok's number where visitors get it", async () => {
  const config = edge({ ip_restriction: { allow: ['10.0.0.0/8'], deny: [] } })
  for (const [ngrokErrorHeader, number] of [
    [true, [`ERR_NGROK_${visitorErrors.IP_REFUSED.ngrok}`]],
    [false, undefined],
  ] as const) {
    const { outcome } = await ask(config, { request: {} }, { ngrokErrorHeader })
    const { headers } = outcome
    assert.deepEqual([headers['postern-error-code'], headers['ngrok-error-code']], [['ERR_IP_REFUSED'], number])
  }
})

test('a path that servers read in several ways is refused as in real traffic', async () => {
  const rules = [{ expressions: ["req.url.path == '/a'"], actions: [{ type: 'deny' }] }]
  const { outcome } = await ask(edge(policy({ inbound: rules })), { request: { url: '/a/%2e%2e/b' } })
  assert.equal(outcome.error_code, 'ERR_AMBIGUOUS_PATH')
})

test('a fixed response of the backend is reported', async () => {
  const backend = { kind: 'http_response', id: 'bkdhr_1', status: 503, headers: { 'x-a': '1' }, body: 'soon' }
  const { outcome } = await ask(edge({ backend }), { request: {} })
  assert.deepEqual([outcome.verdict, outcome.status_code, outcome.body], ['passes', 503, 'soon'])
  assert.deepEqual(outcome.headers['x-a'], ['1'])
})

test('an upgrade is handled as one', async () => {
  const config = edge({ websocket_tcp_converter: {} })
  const key = { 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==', 'sec-websocket-version': '13' }
  const upgrade = { connection: 'Upgrade', upgrade: 'websocket', ...key }
  assert.equal((await ask(config, { request: { headers: upgrade } })).outcome.status_code, 101)
  assert.equal((await ask(config, { request: {} })).outcome.error_code, 'ERR_WEBSOCKET_REQUIRED')
})

test('connections of TCP and TLS edges', async () => {
  const rules = (place: string, expression: string, readsHandshake = false) =>
    policy({ inbound: [{ expressions: [expression], actions: [{ type: 'deny' }] }] }, place, readsHandshake)
  const tcp = raw('tcp', rules('tcp', "conn.client_ip == '192.0.2.7' && conn.server_port == 7000"))
  assert.equal((await ask(tcp, { connection: { client_ip: '192.0.2.7' } })).outcome.verdict, 'closes')
  assert.equal((await ask(tcp, { connection: {} })).outcome.verdict, 'passes')
  const through = raw('tls', rules('tls', "conn.tls.sni == 't.test'"))
  assert.deepEqual(notesOf(await ask(through, { connection: {} })), [
    'policy accept: refuses with ERR_CONNECTION_DENIED (403)',
  ])
  const ended = raw('tls', {
    ...rules('tls', "conn.tls.version == '1.2'", true),
    tls_termination: { terminate: 'edge', minVersion: '1.2' },
  })
  const verdict = async (version: string) => (await ask(ended, { connection: { tls: { version } } })).outcome
  assert.equal((await verdict('1.3')).verdict, 'passes')
  assert.equal((await verdict('1.2')).error_code, 'ERR_CONNECTION_DENIED')
  assert.match((await verdict('1.1')).text, /TLSv1\.1 is older than TLSv1\.2/)
  assert.equal((await ask({ ...tcp, modules: {} }, { connection: {} })).outcome.error_code, 'ERR_NO_BACKEND')
})

test('a client certificate must chain to an authority, via those sent with it', async () => {
  const valid = { notBefore: new Date(Date.now() - 86_400_000), notAfter: new Date(Date.now() + 86_400_000) }
  const root = await makeIdentity({ name: 'CN=root', isCa: true, ...valid })
  const middle = await makeIdentity({ name: 'CN=middle', isCa: true, issuer: root, ...valid })
  const own = await makeIdentity({ name: 'CN=jane', issuer: middle, ...valid })
  const stranger = await makeIdentity({ name: 'CN=jane', ...valid })
  const config = edge(
    policy({
      inbound: [
        { expressions: ["conn.tls.client.subject.common_name == 'jane'"], actions: [{ type: 'custom-response' }] },
      ],
    }),
    { mutual_tls: { authorities: [root.certificatePem] } },
  )
  const outcome = async (client_certificate: string) =>
    (await ask(config, { request: {}, connection: { tls: { client_certificate } } })).outcome
  assert.equal((await outcome(own.certificatePem + middle.certificatePem)).verdict, 'answers')
  assert.match((await outcome(own.certificatePem)).text, /does not lead to one of the authorities/)
  assert.match((await outcome(stranger.certificatePem)).text, /does not lead to one of the authorities/)
  assert.equal((await outcome('')).error_code, 'ERR_CLIENT_CERTIFICATE_REQUIRED')
})

test('errors in a description name their field', async () => {
  const config = edge({})
  const request = (fields: object) => ask(config, { request: fields })
  await refused(ask(config, { connection: {} }), 'request', /this edge sees requests/)
  await refused(ask(raw('tcp', {}), { request: {} }), 'request', /nothing that a TCP edge sees/)
  await refused(ask(raw('tls', {}), {}), 'connection', /is required/)
  await refused(request({ url: 'a b' }), 'request.url', /must be a URL/)
  await refused(request({ url: '/a b' }), 'request.url', /must be a URL/)
  await refused(request({ url: 'ftp://a.test/' }), 'request.url', /must be a URL/)
  await refused(request({ url: 'https://c.test/' }), 'request.url', /`c\.test`, which edghts_1 does not serve/)
  await refused(request({ url: 'https://a b/' }), 'request.url', /host/)
  await refused(request({ method: 'GET IT' }), 'request.method', /is not a method/)
  await refused(request({ headers: { 'a b': '1' } }), 'request.headers["a b"]', /is not the name of a header/)
  await refused(request({ headers: { a: ['1', 'b\r\nc: d'] } }), 'request.headers["a"]', /no header can hold/)
  await refused(
    ask(config, { request: {}, response: { headers: { 'a b': '1' } } }),
    'response.headers["a b"]',
    /header/,
  )
  await refused(ask(config, { request: {}, connection: { client_ip: '1.2.3' } }), 'connection.client_ip', /IP address/)
  await refused(
    ask(config, { request: {}, connection: { server_name: 'x' } }),
    'connection.server_name',
    /does not serve/,
  )
  const tls = { client_certificate: 'nonsense' }
  await refused(ask(config, { request: {}, connection: { tls } }), 'connection.tls.client_certificate', /in PEM/)
  const two = [...config.routes, { id: 'edghtsrt_2', matchType: 'exact_path', match: '/two', modules: {} } as const]
  await refused(
    ask({ ...config, routes: two }, { request: { url: '/two' } }, { routeId: ROUTE }),
    'request.url',
    /goes to the route edghtsrt_2/,
  )
  const own = await ask({ ...config, routes: two }, { request: {} }, { routeId: 'edghtsrt_2' })
  assert.deepEqual([own.outcome.route_id, own.outcome.error_code], ['edghtsrt_2', 'ERR_NO_BACKEND'])
  assert.equal((await request({ url: 'https://x.b.test/' })).outcome.verdict, 'passes')
})
