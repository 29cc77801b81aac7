// biome-ignore-all lint/suspicious/noTemplateCurlyInString: policies write their placeholders like this
/** Explanations match reality: hundreds of requests are explained, then sent. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { after, before, describe, test } from 'node:test'
import type { Json } from '../support/api-client.ts'
import { until } from '../support/until.ts'
import { type Recorder, recorder, shouts } from './edges/upstreams.ts'
import { type Answer, type Ask, dial, versions } from './edges/visitor.ts'
import { World } from './edges/world.ts'

const BODY = 'hello '.repeat(100)

let world: World
let service: Recorder
let pairs = 0
before(async () => {
  world = await World.start()
  service = await recorder(world, (request, response) => {
    const { status_code, headers, body } = answerTo(request.url ?? '')
    response.writeHead(status_code, { ...headers, 'content-length': Buffer.byteLength(body) })
    response.end(body)
  })
})
after(() => world.stop())

/** The answer of the service, used both for real and in descriptions. */
function answerTo(url: string) {
  if (url.startsWith('/fail')) return { status_code: 500, headers: { 'x-from': 'service' }, body: 'broken' }
  if (url.startsWith('/missing'))
    return { status_code: 404, headers: { 'x-from': 'service', 'x-two': ['1', '2'] }, body: '' }
  return {
    status_code: 200,
    headers: { 'content-type': 'text/plain', 'x-from': 'service', 'set-cookie': 'seen=1; Path=/' },
    body: BODY,
  }
}

const rule = (expression: string, type: string, config?: object) => ({
  ...(expression !== '' && { expressions: [expression] }),
  actions: [{ type, ...(config && { config }) }],
})
const answer = (body: string, status_code = 418) => ({ status_code, body })
const inbound = (...rules: object[]) => ({ inbound: rules })
const outbound = (...rules: object[]) => ({ outbound: rules })

/** Policies of a route, by subject. */
const policies: Readonly<Record<string, object>> = {
  'no rules': {},
  methods: inbound(rule("!(req.method in ['GET', 'HEAD'])", 'deny', { status_code: 405 })),
  paths: inbound(rule("req.url.path.startsWith('/a/') || req.url.path == '/fail'", 'deny')),
  queries: inbound(
    rule("hasQueryParam('q') && getQueryParam('q')[0] == '1'", 'custom-response', answer('q=${req.url.query}')),
  ),
  headers: inbound(
    rule("req.headers['x-role'][0] == 'admin'", 'custom-response', answer('welcome ${req.headers["x-role"]}')),
  ),
  'a header that may be missing': inbound(
    rule("hasReqHeader('X-Role') && !getReqHeader('x-role').exists(r, r == 'admin')", 'deny', { status_code: 401 }),
  ),
  addresses: inbound(rule("inCidrRange(conn.client_ip, '127.0.0.4/30')", 'deny')),
  'allowed networks': inbound(rule('', 'restrict-ips', { allow: ['127.0.0.0/30'], deny: ['127.0.0.2/32'] })),
  'networks that are only checked': inbound(
    rule('', 'restrict-ips', { allow: ['10.0.0.0/8'], enforce: false }),
    rule("actions.ngrok.restrict_ips.action == 'deny'", 'add-headers', { headers: { 'x-outside': 'yes' } }),
  ),
  redirects: inbound(rule('', 'redirect', { from: '/a/(\\w+)', to: '/b/$1', status_code: 301 })),
  'a redirect to another site': inbound(
    rule("req.method == 'GET'", 'redirect', { to: 'https://other.test${req.url.path}', headers: { 'x-r': '1' } }),
  ),
  rewritten: inbound(rule('', 'url-rewrite', { from: '/a/', to: '/missing/' })),
  'a rewritten host': inbound(
    rule("req.url.path.startsWith('/a')", 'url-rewrite', { from: '^https?://[^/]+', to: 'https://inner.test' }),
  ),
  'added headers': inbound(
    rule('', 'add-headers', { headers: { 'X-Who': '${req.method} ${conn.client_ip}', Host: 'inner.test' } }),
  ),
  'removed headers': inbound(rule('', 'remove-headers', { headers: ['x-role', 'Cookie'] })),
  'headers that later rules see': inbound(
    rule('', 'add-headers', { headers: { 'x-role': 'guest' } }),
    rule("req.headers['x-role'].size() > 1", 'deny', { status_code: 400 }),
  ),
  variables: inbound(
    rule('', 'set-vars', { vars: [{ n: '${size(req.url.path)}' }, { twice: '${vars.n * 2}' }] }),
    rule('vars.twice > 10', 'custom-response', answer('${vars.n} and ${vars.twice}')),
  ),
  passwords: inbound(rule("req.url.path != '/fail'", 'basic-auth', { credentials: ['jane:password'], realm: 'staff' })),
  'passwords that are only checked': inbound(
    rule('', 'basic-auth', { credentials: ['jane:password'], enforce: false }),
    rule('!actions.ngrok.basic_auth.passed', 'add-headers', { headers: { 'x-anonymous': '1' } }),
  ),
  webhooks: inbound(rule("req.method == 'POST'", 'verify-webhook', { provider: 'gitlab', secret: 'the token' })),
  limits: inbound(
    rule("req.method == 'GET'", 'rate-limit', {
      name: 'gets',
      capacity: 3,
      rate: '24h',
      bucket_key: ['conn.client_ip'],
    }),
  ),
  closes: inbound(rule("req.url.path == '/a/x' || req.method == 'DELETE'", 'close-connection')),
  'an action that fails': inbound(rule('', 'add-headers', { headers: { 'x-copy': "${req.headers['x-role'][0]}" } })),
  'an expression that costs too much': inbound(
    rule(
      '[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, a + b + c > 0)))',
      'add-headers',
      { headers: { 'x-a': '1' } },
    ),
    rule("req.method == 'PUT'", 'deny'),
  ),
  'cookies and agents': inbound(
    rule("hasReqCookie('sid') && req.user_agent.is_bot", 'deny', { status_code: 403 }),
    rule("req.cookies['sid'][0].value == 'abc123'", 'add-headers', { headers: { 'x-known': 'yes' } }),
  ),
  'the older names': inbound(rule("req.Method == 'POST' || conn.ClientIP == '127.0.0.9'", 'deny')),
  TLS: inbound(
    rule("conn.tls.version == '1.3' && req.version == 'HTTP/2.0'", 'add-headers', {
      headers: { 'x-tls': '${conn.tls.sni.split(".")[1]}' },
    }),
  ),
  statuses: outbound(
    rule('res.status_code >= 500', 'custom-response', answer('later', 503)),
    rule('res.status_code == 404', 'add-headers', { headers: { 'x-status': '${res.status_code}' } }),
  ),
  'response headers': outbound(
    rule("hasResHeader('x-two')", 'remove-headers', { headers: ['x-two', 'x-from'] }),
    rule("res.headers['content-type'][0].startsWith('text/')", 'add-headers', { headers: { 'x-text': 'yes' } }),
  ),
  'both ways': {
    ...inbound(
      rule("req.url.path == '/a/x'", 'custom-response', answer('here', 200)),
      rule("req.url.path == '/fail'", 'deny'),
    ),
    ...outbound(rule('', 'add-headers', { headers: { 'x-seen': '${res.status_code}' } })),
  },
  compressed: outbound(rule('', 'compress-response', { algorithms: ['gzip'] })),
  'what is logged': inbound(rule('', 'log', { metadata: { m: '${req.method}' } })),
}

const basic = `Basic ${Buffer.from('jane:password').toString('base64')}`

/** Requests that these policies treat differently. */
const asks: readonly Ask[] = [
  {},
  { path: '/a/x?q=1' },
  { path: '/a/x?q=1', headers: { 'x-role': 'admin', 'accept-encoding': 'gzip' } },
  { path: '/fail', headers: { authorization: basic } },
  { path: '/missing', headers: { 'x-role': ['user', 'admin'], cookie: 'sid=abc123; other=1' } },
  { method: 'POST', path: '/b', body: '{"a":1}', headers: { 'x-gitlab-token': 'the token' } },
  { method: 'POST', path: '/a/b', body: 'x'.repeat(5000), headers: { 'x-gitlab-token': 'another token' } },
  { method: 'PUT', path: '/long/enough/path', from: '127.0.0.2' },
  { method: 'DELETE', path: '/a/x', from: '127.0.0.5', headers: { authorization: `Basic ${btoa('jane:wrong one')}` } },
  { path: '/a/%2e%2e/b', from: '127.0.0.9' },
  { method: 'HEAD', path: '/a/x', headers: { 'user-agent': 'Googlebot/2.1', cookie: 'sid=zzz999' } },
  { path: '/?q=2', headers: { accept: 'application/json', authorization: basic, 'accept-encoding': 'gzip' } },
]

/** Headers that servers add by themselves, or that are masked; they are not compared. */
const apart = new Set([
  'date',
  'postern-request-id',
  'connection',
  'content-length',
  'transfer-encoding',
  'keep-alive',
  'set-cookie',
  'retry-after',
])

for (const [name, policy] of Object.entries(policies)) {
  test(`as explained: ${name}`, async () => {
    const edge = await world.httpsTo(service, { policy })
    for (const [i, ask] of asks.entries()) {
      const about = { ...ask, version: versions[i % 2] ?? '1.1' } as const
      const explanation = await explained(edge.id, about)
      const reachedBefore = service.seen.length
      const got = await world.ask(edge.name, about).catch(() => undefined)
      pairs++
      compare(
        `${name}, ${about.method ?? 'GET'} ${about.path ?? '/'} (${i})`,
        explanation,
        got,
        service.seen.length > reachedBefore,
      )
    }
  })
}

test('at least 300 pairs were compared', () => {
  assert.ok(pairs >= 300, `${pairs} were compared`)
})

async function explained(edge_id: string, ask: Ask): Promise<Json> {
  const { method = 'GET', path = '/', headers = {}, body = '', from = '127.0.0.1', version } = ask
  const question = {
    edge_id,
    request: { method, url: path, headers, body: String(body), version },
    connection: { client_ip: from, server_ip: '127.0.0.1', server_port: world.platform.httpsPort },
  }
  const first = await world.api.send('POST', '/policy/explain', { body: question })
  assert.equal(first.status, 200, first.text)
  const { upstream } = first.body.outcome
  if (upstream === null) return first.body
  // The answer of the service depends on its request, which is known by now.
  const response = described(upstream.url, method)
  const second = await world.api.send('POST', '/policy/explain', { body: { ...question, response } })
  assert.equal(second.status, 200, second.text)
  return second.body
}

function described(url: string, method: string) {
  const { body, ...head } = answerTo(url)
  return { ...head, body: method === 'HEAD' ? '' : body }
}

function compare(what: string, { outcome }: Json, got: Answer | undefined, isReached: boolean): void {
  const where = `${what}: ${JSON.stringify(outcome)}`
  assert.equal(outcome.verdict === 'closes', got === undefined, where)
  assert.equal(outcome.upstream !== null, isReached, where)
  if (isReached) {
    const { last } = service
    assert.deepEqual([outcome.upstream.method, outcome.upstream.url], [last.method, last.url], where)
    for (const [name, values] of Object.entries<string[]>(outcome.upstream.headers)) {
      if (apart.has(name) || values.includes('[secret]')) continue
      assert.deepEqual(last.all(name), values, `${name}, ${where}`)
    }
    const others = last.names.filter((name) => !apart.has(name) && outcome.upstream.headers[name] === undefined)
    assert.deepEqual(others, [], where)
  }
  if (!got) return
  assert.equal(outcome.status_code, got.status, where)
  assert.equal(outcome.error_code ?? undefined, got.code, where)
  const names = new Set(
    [...Object.keys(outcome.headers), ...Object.keys(got.headers)].filter((name) => !apart.has(name)),
  )
  for (const name of names)
    assert.equal(outcome.headers[name]?.join(', '), [got.headers[name]].flat().join(', '), `${name}, ${where}`)
  if (got.headers['content-encoding'] === undefined && got.text !== '') {
    assert.equal(withoutId(outcome.body), withoutId(got.text), where)
  }
}

/** Masks ids of requests: an error page shows one, and a described page has none. */
function withoutId(page: string): string {
  return page.replace(/[0-9a-f]{32}/g, 'id')
}

describe('as explained: connections', () => {
  const addresses = ['127.0.0.1', '127.0.0.2', '127.0.0.3', '127.0.0.4', '127.0.0.9']
  const rules: Readonly<Record<string, object>> = {
    one: inbound(rule("conn.client_ip == '127.0.0.3'", 'deny')),
    networks: inbound(rule('', 'restrict-ips', { allow: ['127.0.0.0/30'], deny: ['127.0.0.2/32'] })),
    'some closed': inbound(rule("inCidrRanges(conn.client_ip, ['127.0.0.4/32', '127.0.0.9/32'])", 'close-connection')),
  }
  const verdict = async (edge_id: string, connection: object): Promise<string> => {
    const answered = await world.api.send('POST', '/policy/explain', { body: { edge_id, connection } })
    assert.equal(answered.status, 200, answered.text)
    return answered.body.outcome.verdict
  }

  for (const [name, policy] of Object.entries(rules)) {
    test(`of a TCP edge, ${name}`, async () => {
      const edge = await world.tcpEdge({ backend: await world.toAddress(await shouts(world)), policy })
      for (const client_ip of addresses) {
        const explanation = await verdict(edge.id, { client_ip })
        const socket = connect({ port: edge.port, host: '127.0.0.1', localAddress: client_ip }).on('error', () => {})
        socket.write('a')
        const [said] = await Promise.race([once(socket, 'data'), once(socket, 'close').then(() => ['closed'])])
        socket.destroy()
        assert.equal(explanation === 'closes', said === 'closed', `${client_ip} ${explanation}`)
      }
    })
  }

  for (const [what, expression, modules] of [
    ['passed through', "conn.tls.sni.startsWith('e') && conn.client_ip == '127.0.0.3'", {}],
    [
      'ended here',
      "conn.tls.version == '1.3' && conn.client_ip == '127.0.0.3'",
      { tls_termination: { terminate_at: 'edge' } },
    ],
  ] as const) {
    test(`of a TLS edge, ${what}`, async () => {
      const upstream = await shouts(world)
      const policy = inbound(rule(expression, 'deny'))
      const edge = await world.tlsEdge({ backend: await world.toAddress(upstream), policy, ...modules })
      for (const client_ip of addresses) {
        const explanation = await verdict(edge.id, { client_ip })
        const before = upstream.sockets.length
        const socket = dial({ name: edge.name, port: edge.port, ca: world.platform.ca }, { from: client_ip })
        socket.on('secureConnect', () => socket.write('a'))
        const closed = new Promise((resolve) => socket.once('close', resolve))
        await Promise.race([closed, until('the service is reached', () => upstream.sockets.length > before)])
        assert.equal(explanation === 'passes', upstream.sockets.length > before, `${client_ip} ${explanation}`)
        socket.destroy()
      }
    })
  }
})
