/** `POST /policy/explain` on a running server: who may use it, what it uses, and that it has no side effects. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { run } from '../../src/cli/program.ts'
import { testTerminal } from '../../src/cli/testing/test-terminal.ts'
import type { Json } from '../support/api-client.ts'
import { metric } from '../support/metrics.ts'
import { until } from '../support/until.ts'
import { type Recorder, recorder } from './edges/upstreams.ts'
import { World } from './edges/world.ts'

let world: World
let service: Recorder
before(async () => {
  world = await World.start()
  service = await recorder(world)
})
after(() => world.stop())

async function explain(body: unknown): Promise<Json> {
  const answer = await world.api.send('POST', '/policy/explain', { body })
  assert.equal(answer.status, 200, answer.text)
  return answer.body
}

const limit = { name: 'one', capacity: 1, rate: '24h', bucket_key: ['conn.client_ip'] }
const limited = { inbound: [{ name: 'limit', actions: [{ type: 'rate-limit', config: limit }] }] }

test('nothing is dialled, counted or logged, and rate limits start from what real traffic used', async () => {
  const edge = await world.httpsTo(service, { policy: limited })
  const request = { edge_id: edge.id, request: {}, connection: { client_ip: '127.0.0.1' } }
  const [seen, requests] = [service.seen.length, await metric(world.platform.metricsUrl, 'postern_edge_requests_total')]
  const logged = (): number => world.logged('request').filter(({ edge: id }) => id === edge.id).length
  for (let i = 0; i < 3; i++) assert.equal((await explain(request)).outcome.verdict, 'passes')
  assert.equal(service.seen.length, seen)
  assert.equal(await metric(world.platform.metricsUrl, 'postern_edge_requests_total'), requests)
  assert.equal(logged(), 0)
  assert.equal((await world.ask(edge.name)).status, 200)
  await until('the real request is logged', () => logged() === 1)
  for (let i = 0; i < 3; i++) assert.equal((await explain(request)).outcome.error_code, 'ERR_RATE_LIMITED')
  const other = { ...request, connection: { client_ip: '127.0.0.2' } }
  assert.equal((await explain(other)).outcome.verdict, 'passes')
  assert.equal((await world.ask(edge.name, { from: '127.0.0.2' })).status, 200)
})

test('an explanation uses the current edge, for any caller', async () => {
  const edge = await world.httpsTo(service, { policy: { inbound: [{ actions: [{ type: 'deny' }] }] } })
  const [route] = edge.routes
  assert.ok(route)
  const { api } = await world.platform.member('member')
  const asked = { route_id: route.id, request: {} }
  const first = await api.send('POST', '/policy/explain', { body: asked })
  assert.equal(first.body.outcome.status_code, 403, first.text)
  await world.api.delete(`${route.path}/policy`)
  const { outcome, steps } = await explain(asked)
  assert.deepEqual([outcome.verdict, outcome.route_id, steps], ['passes', route.id, []])
})

test('modules of the edge and of the route are included, with IP policies as stored', async () => {
  const office = await world.ipPolicy({ allow: ['198.51.100.0/24'], deny: ['198.51.100.7/32'] })
  const edge = await world.httpsTo(service, {
    modules: { tls_termination: { min_version: '1.3' } },
    ip_restriction: { ip_policy_ids: [office] },
    policy: { inbound: [{ actions: [{ type: 'restrict-ips', config: { ip_policies: [office] } }] }] },
  })
  const reported = async (client_ip: string, tls?: object): Promise<string> => {
    const connection = { client_ip, ...(tls && { tls }) }
    const { outcome } = await explain({ edge_id: edge.id, request: {}, connection })
    return outcome.error_code ?? outcome.verdict
  }
  assert.equal(await reported('198.51.100.1'), 'passes')
  assert.equal(await reported('198.51.100.7'), 'ERR_IP_REFUSED')
  assert.equal(await reported('203.0.113.1'), 'ERR_IP_REFUSED')
  assert.equal(await reported('198.51.100.1', { version: '1.2' }), 'closes')
  const document = { inbound: [{ actions: [{ type: 'restrict-ips', config: { ip_policies: [office] } }] }] }
  const { outcome } = await explain({ policy: document, request: {}, connection: { client_ip: '203.0.113.1' } })
  assert.equal(outcome.error_code, 'ERR_IP_REFUSED')
})

test('client secrets and passwords are in no answer', async () => {
  const oidc = {
    issuer: 'https://id.example',
    client_id: 'client',
    client_secret: 'top-secret-value',
    scopes: ['openid'],
  }
  const edge = await world.httpsTo(service, {
    oidc,
    policy: { inbound: [{ actions: [{ type: 'basic-auth', config: { credentials: ['jane:correct horse'] } }] }] },
  })
  for (const login of [undefined, { email: 'a@b.test' }]) {
    const headers = { authorization: `Basic ${btoa('jane:correct horse')}` }
    const text = JSON.stringify(await explain({ edge_id: edge.id, request: { headers }, ...(login && { login }) }))
    for (const secret of ['top-secret-value', 'correct horse', btoa('jane:correct horse')]) {
      assert.ok(!text.includes(secret), text)
    }
  }
  assert.deepEqual((await world.api.get('/app/sessions')).application_sessions, [])
})

const refusals: readonly (readonly [object, string, RegExp])[] = [
  [{ request: {} }, 'ERR_FIELD_REQUIRED', /give one of `edge_id`/],
  [{ edge_id: 'edghts_1', policy: {}, request: {} }, 'ERR_INVALID_VALUE', /`policy` cannot be combined with `edge_id`/],
  [{ edge_id: 'edghts_1', request: {} }, 'ERR_UNKNOWN_REFERENCE', /`edge_id`: there is no/],
  [{ route_id: 'edghtsrt_1', request: {} }, 'ERR_UNKNOWN_REFERENCE', /`route_id`: there is no/],
  [{ policy: {} }, 'ERR_FIELD_REQUIRED', /`request` or `connection` is required/],
  [
    { policy: { inbound: [{ actions: [{ type: 'denny' }] }] }, request: {} },
    'ERR_BAD_POLICY',
    /`policy\.inbound\[0\]\.actions\[0\]\.type`/,
  ],
  [
    { traffic_policy: { value: 'on_tcp_connect: []' }, request: {} },
    'ERR_BAD_POLICY',
    /`traffic_policy\.value: on_tcp_connect`/,
  ],
  [{ policy: {}, request: { url: 'nowhere' } }, 'ERR_INVALID_VALUE', /`request\.url`/],
  [{ policy: {}, request: { metod: 'GET' } }, 'ERR_UNKNOWN_FIELD', /did you mean `method`\?/],
  [{ policy: {}, request: {}, connection: { client_ip: 'here' } }, 'ERR_INVALID_VALUE', /`connection\.client_ip`/],
  [
    { policy: { inbound: [{ actions: [{ type: 'restrict-ips', config: { ip_policies: ['ipp_1'] } }] }] }, request: {} },
    'ERR_UNKNOWN_REFERENCE',
    /`policy\.inbound\[0\]\.actions\[0\]\.config\.ip_policies\[0\]`/,
  ],
]

for (const [body, code, message] of refusals) {
  test(`${code}: ${message.source}`, async () => {
    const { msg, status_code } = await world.api.refused(code, 'POST', '/policy/explain', { body })
    assert.equal(status_code, 400)
    assert.match(msg, message)
  })
}

test('large and hostile documents are answered or refused, and others are served meanwhile', async () => {
  const edge = await world.httpsTo(service)
  const chain = Array.from({ length: 90 }, (_, i) => `req.headers['a${i}'][0] != ''`).join(' || ')
  const many = Array.from({ length: 100 }, () => ({
    expressions: ["req.url.path.startsWith('/a')"],
    actions: [{ type: 'deny' }],
  }))
  const loops = '[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, a * b * c > 0)))'
  const bodies = [
    {
      policy: {
        inbound: [{ expressions: [chain], actions: [{ type: 'deny' }] }],
      },
      request: {},
    },
    {
      policy: {
        inbound: many,
        outbound: many.map(({ expressions }) => ({
          expressions,
          actions: [{ type: 'log', config: { metadata: {} } }],
        })),
      },
      request: {},
    },
    {
      policy: { inbound: [{ expressions: [loops], actions: [{ type: 'deny' }] }] },
      request: { body: 'x'.repeat(200_000) },
    },
  ]
  const answers = Promise.all(bodies.map((body) => world.api.send('POST', '/policy/explain', { body })))
  assert.equal((await world.ask(edge.name)).status, 200)
  for (const { status, text } of await answers) assert.equal(status, 200, text)
})

test('`postern policy test` asks the server about edges and routes', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'postern-explain-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const edge = await world.httpsTo(service, { policy: { inbound: [{ name: 'no', actions: [{ type: 'deny' }] }] } })
  const cases = [
    { name: 'by the edge', request: {}, expect: { status_code: 403, matched: ['no'] } },
    { name: 'by the route', route_id: edge.routes[0]?.id, request: {}, expect: { verdict: 'answers' } },
  ]
  const file = join(folder, 'cases.json')
  const policyTest = async (content: object, key = world.platform.apiKey) => {
    writeFileSync(file, JSON.stringify(content))
    const terminal = testTerminal({ env: { POSTERN_API_KEY: key } })
    const code = await run(['policy', 'test', file, '--api-url', world.platform.url], terminal)
    return { code, ...terminal.printed }
  }
  assert.deepEqual(await policyTest({ edge_id: edge.id, cases }), {
    code: 0,
    err: '',
    out: 'ok    by the edge\nok    by the route\n2 cases, 0 failed\n',
  })
  const differs = await policyTest({ edge_id: edge.id, cases: [{ request: {}, expect: { verdict: 'passes' } }] })
  assert.equal(differs.code, 1)
  assert.match(differs.out, /verdict: expected "passes", got "answers"/)
  assert.match((await policyTest({ edge_id: 'edghts_1', cases })).err, /`edge_id`: there is no/)
  assert.match((await policyTest({ edge_id: edge.id, cases }, 'wrong')).err, /UNAUTHENTICATED/)
})

test('an edge that is too large to explain is refused', async () => {
  const answer = { type: 'custom-response', config: { body: 'x'.repeat(60_000) } }
  const policy = {
    inbound: Array.from({ length: 15 }, () => ({ expressions: ["req.method == 'PUT'"], actions: [answer] })),
  }
  const routes = Array.from({ length: 5 }, (_, i) => ({ match: `/${i}`, policy }))
  const edge = await world.httpsEdge({ routes })
  const body = { edge_id: edge.id, request: { url: '/1' } }
  const { msg } = await world.api.refused('ERR_TOO_COSTLY', 'POST', '/policy/explain', { body })
  assert.match(msg, /`edge_id` names are too large/)
})
