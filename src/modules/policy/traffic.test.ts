import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { HeaderList } from '../../lib/http/header-list.ts'
import { createLog } from '../../lib/log/create-log.ts'
import { handshake, reached, request, response, visitor } from '../testing/test-request.ts'
import { ask, compile, on } from './testing/test-policy.ts'

const denied = { respond: { status: 403, headers: [], body: '' } }

const conditions: readonly [expression: string, isTrue: boolean][] = [
  ["req.method == 'GET'", true],
  ["req.Method == 'GET'", true],
  ["req.method == 'POST'", false],
  ["conn.client_ip == '192.0.2.7' && conn.ClientIP.startsWith('192.')", true],
  ['conn.client_port == 40000 && conn.server_port == 443', true],
  ["req.url == 'https://app.example.com/a/b?c=d&c=e' && req.url.path == '/a/b'", true],
  ["req['url']['path'] == '/a/b'", true],
  ["req.url.query_params['c'] == ['d', 'e'] && getQueryParam('c')[1] == 'e'", true],
  ["'x-one' in req.headers && req.headers['x-one'][0] == '1' && req.Headers['x-one'].size() == 1", true],
  ["'X-One' in req.Headers && req.Headers['X-One'] == ['1'] && !('Nope' in req.Headers)", true],
  ["'1' in req.Headers['X-One'] && req['Headers']['X-One'][0] == '1'", true],
  ["req.headers['X-One'][0] == '1'", false],
  ["hasReqHeader('X-One') && getReqHeader('x-ONE') == ['1'] && !hasReqHeader('nope')", true],
  ["req.cookies['s'][0].value == 'v' && hasReqCookie('s') && getReqCookie('s').value == 'v'", true],
  ["req.user_agent.contains('curl') && req.user_agent.name == 'curl' && req.user_agent.version == '8.1'", true],
  ["req.content_type == 'text/plain; charset=utf-8' && req.content_type.parameters['charset'] == 'utf-8'", true],
  ["inCidrRange(conn.client_ip, '192.0.2.0/24') && !inCidrRange(conn.client_ip, 'rubbish')", true],
  ["inCidrRanges(conn.client_ip, ['10.0.0.0/8', 'x', '192.0.2.0/28'])", true],
  ['conn.ts.start < timestamp(time.now) && conn.ts.start.getFullYear() == 2026', true],
  ['has(req.url) && has(req.headers.te) == false && !has(conn.tls.client)', true],
  ["endpoint.host == 'app.example.com' && endpoint.id == 'edghts_1' && endpoint.protocol == 'https'", true],
  ["[1, 2, 3].exists(x, x == 2) && ['a'].map(x, x + 'b') == ['ab'] && [3, 1].sort() == [1, 3]", true],
  ["req.url.path.matches('^/a') && 'abc'.matches(req.url.path.substring(1, 2)) && !'x'.matches('y')", true],
  ["hash.sha256('a').startsWith('ca97') && base64.decode(base64.encode('ä')) == 'ä'", true],
  ["json.decode('{\"a\": [1]}').a[0] == 1.0 && json.encode({'a': 1}) == '{\"a\":1}'", true],
  ["'a-b'.replace('-', '+') == 'a+b' && 'aXb'.lower() == 'axb' && 'abc'.reverse() == 'cba'", true],
  ["req.headers['missing'][0] == 'x'", false],
  ['req.url.path.size() > 3 ? true : false', true],
  ["['GET', 'PUT'].all(m, m != req.method)", false],
  ["req.headers.host == ['app.example.com'] && getReqHeader('Host') == ['app.example.com']", true],
  ["hasReqHeader('content-length') || 'transfer-encoding' in req.headers || req.content_length != 0", false],
  ['rand.int(1, 2) == 1 && rand.double() < 1.0', true],
]

describe('a condition sees', () => {
  for (const [expression, isTrue] of conditions) {
    test(expression, async () => {
      const phases = compile({ inbound: [on(expression, 'deny')] }, { tools: { now: () => Date.UTC(2026, 1, 1) } })
      const ctx = request({
        target: '/a/b?c=d&c=e',
        path: '/a/b',
        query: 'c=d&c=e',
        headers: {
          'X-One': '1',
          cookie: 'r=w; s=v',
          'user-agent': 'curl/8.1',
          'content-type': 'text/plain; charset=utf-8',
        },
      })
      assert.deepEqual(await ask(phases, ctx), isTrue ? denied : undefined)
    })
  }
})

describe('rules', () => {
  test('run in order, until one ends the phase', async () => {
    const phases = compile({
      inbound: [
        on("req.method == 'GET'", 'set-vars', { vars: [{ n: 1 }, { who: '${req.method}' }, { m: '${vars.n + 1}' }] }),
        on("vars.n == 1 && vars.who == 'GET' && vars.m == 2", 'custom-response', { body: 'n=${vars.n} ${vars.who}' }),
        on('true', 'deny'),
      ],
    })
    assert.deepEqual(await ask(phases, request()), {
      respond: { status: 200, headers: [['content-type', 'text/plain; charset=utf-8']], body: 'n=1 GET' },
    })
  })

  test('need all their expressions', async () => {
    const phases = compile({ inbound: [{ expressions: ['true', "req.method == 'PUT'"], actions: [{ type: 'deny' }] }] })
    assert.equal(await ask(phases, request()), undefined)
    assert.deepEqual(await ask(phases, request({ method: 'PUT' })), denied)
  })

  test('set `readsPath` exactly when they read the path', () => {
    assert.equal(compile({ inbound: [on("req.url.path == '/'", 'deny')] }).readsPath, true)
    assert.equal(compile({ inbound: [on("req.Path == '/'", 'deny')] }).readsPath, true)
    assert.equal(compile({ inbound: [on("req.method == 'GET'", 'redirect', { to: 'https://a' })] }).readsPath, true)
    assert.equal(compile({ inbound: [on("req.method == 'GET'", 'deny')] }).readsPath, false)
  })

  test('whose expressions cost too much let nothing pass: no rule is skipped', async () => {
    const dear = '[1,2,3,4,5,6,7,8,9].all(a, lists.range(200).all(b, lists.range(200).all(c, c >= 0)))'
    const harmless = on(dear, 'remove-headers', { headers: ['x-internal-user'] })
    const spent = { refuse: 'POLICY_BUDGET_SPENT' }
    for (const inbound of [
      [on(dear, 'deny')],
      [on(`${dear} || true`, 'deny')],
      [harmless],
      [harmless, on('true', 'deny')],
      [on('true', 'add-headers', { headers: { a: `\${${dear}}` } })],
      [on('true', 'http-request', { url: `https://a.example/\${${dear}}`, on_error: 'continue' })],
    ]) {
      assert.deepEqual(await ask(compile({ inbound }), request()), spent)
    }
    const phases = compile({ outbound: [harmless] })
    assert.deepEqual(await phases.response?.(response(), request()), { refuse: 'POLICY_ANSWER_BUDGET_SPENT' })
    const place = compile({ inbound: [on(dear, 'log', { metadata: {} })] }, { place: 'tcp' })
    assert.deepEqual(place.accept?.(visitor, reached), spent)
  })

  test('that cost too much are counted once for each request, and logged', async () => {
    const dear = 'lists.range(2000).all(a, lists.range(2000).all(b, b >= 0))'
    const lines: { msg: string; rule: string; count: number }[] = []
    let spent = 0
    const log = createLog({ destination: { write: (line: string) => lines.push(JSON.parse(line)) } })
    const rules = [{ name: 'dear', ...on(dear, 'add-headers', { headers: { a: 'b' } }) }]
    const phases = compile({ inbound: rules, outbound: rules }, { tools: { log, onBudgetSpent: () => spent++ } })
    for (let i = 0; i < 3; i++) {
      const ctx = request()
      await ask(phases, ctx)
      await phases.response?.(response(), ctx)
    }
    phases.release?.()
    assert.equal(spent, 3)
    assert.deepEqual(
      lines.map(({ msg, rule, count }) => [msg, rule, count]),
      [
        ['policy budget spent', 'dear', 1],
        ['policy budget spent', 'dear', 2],
      ],
    )
  })
})

describe('actions on requests', () => {
  test('deny', async () => {
    const phases = compile({
      inbound: [on('true', 'deny', { status_code: 451 })],
      outbound: [on('true', 'add-headers', { headers: { a: 'b' } })],
    })
    const ctx = request()
    assert.deepEqual(await ask(phases, ctx), { respond: { status: 451, headers: [], body: '' } })
    const made = response({ isFromUpstream: false })
    await phases.response?.(made, ctx)
    assert.ok(!made.headers.has('a'), 'its answer goes past the rules for responses')
  })

  test('close-connection', async () => {
    assert.deepEqual(await ask(compile({ inbound: [on('true', 'close-connection')] }), request()), { close: true })
  })

  test('redirect', async () => {
    const to = async (config: Record<string, unknown>) =>
      ask(
        compile({ inbound: [on('true', 'redirect', config)] }),
        request({ target: '/a/1?x', path: '/a/1', query: 'x' }),
      )
    assert.deepEqual(
      await to({ from: '/a/([0-9]+)', to: '/b/$1', status_code: 308, headers: { y: '${req.method}' } }),
      {
        respond: {
          status: 308,
          headers: [
            ['location', 'https://app.example.com/b/1?x'],
            ['y', 'GET'],
          ],
          body: '',
        },
      },
    )
    assert.equal(await to({ from: '/nowhere', to: '/b' }), undefined)
    assert.deepEqual(await to({ to: 'https://other.example/${req.url.query}' }), {
      respond: { status: 302, headers: [['location', 'https://other.example/x']], body: '' },
    })
  })

  test('url-rewrite', async () => {
    const phases = compile({
      inbound: [on('true', 'url-rewrite', { from: '^https://([^/]+)/a', to: 'https://$1/b/$1' })],
    })
    const ctx = request({ target: '/a/1?x', path: '/a/1', query: 'x' })
    assert.equal(await ask(phases, ctx), undefined)
    assert.equal(ctx.replacedTarget, '/b/app.example.com/1?x')
    assert.equal(ctx.replacedHost, undefined)
  })

  test('add-headers and remove-headers', async () => {
    const phases = compile({
      inbound: [
        { actions: [{ type: 'remove-headers', config: { headers: ['X-Gone'] } }] },
        on("!hasReqHeader('x-gone')", 'add-headers', { headers: { 'X-New': 'a ${req.method}', Host: 'inner.local' } }),
        on("getReqHeader('x-new') != ['a GET']", 'deny'),
      ],
    })
    const ctx = request({ headers: { 'X-Gone': '1', 'X-Kept': '2' } })
    assert.equal(await ask(phases, ctx), undefined)
    const headers = HeaderList.of(ctx.headers)
    phases.upstream?.({ headers }, ctx)
    assert.deepEqual(
      [...headers],
      [
        ['X-Kept', '2'],
        ['x-new', 'a GET'],
      ],
    )
    assert.equal(ctx.replacedHost, 'inner.local')
    assert.deepEqual(phases.removesFromRequest, ['x-gone'])
  })

  test('restrict-ips', async () => {
    const judge = (config: Record<string, unknown>) =>
      ask(compile({ inbound: [on('true', 'restrict-ips', config)] }), request())
    assert.equal(await judge({ allow: ['192.0.2.0/24'] }), undefined)
    assert.equal(await judge({ ip_policies: ['ipp_1'] }), undefined)
    assert.deepEqual(await judge({ deny: ['192.0.2.7/32'] }), { refuse: 'IP_REFUSED' })
    assert.deepEqual(await judge({ allow: ['0.0.0.0/0'], deny: ['192.0.2.7/32'] }), { refuse: 'IP_REFUSED' })
    assert.equal(await judge({ deny: ['192.0.2.7/32'], enforce: false }), undefined)
  })

  test('rate-limit', async () => {
    const phases = compile({
      inbound: [on('true', 'rate-limit', { name: 'n', capacity: 2, rate: '60s', bucket_key: ['req.method'] })],
    })
    for (let i = 0; i < 2; i++) assert.equal(await ask(phases, request()), undefined)
    const refused = await ask(phases, request())
    assert.ok(refused && 'refuse' in refused && refused.refuse === 'RATE_LIMITED')
    assert.match(refused.headers?.[0]?.join(': ') ?? '', /^Retry-After: \d+$/)
    assert.equal(await ask(phases, request({ method: 'PUT' })), undefined)
    assert.equal(await ask(phases, request({ routeId: 'edghtsrt_2' })), undefined, 'each route counts for itself')
  })

  test('rate-limit counts an IPv6 network as one client, where the key is exactly its address', async () => {
    const limited = (key: string) =>
      compile({ inbound: [on('true', 'rate-limit', { name: 'n', capacity: 1, rate: '60s', bucket_key: [key] })] })
    const from = (ip: string) => request({ peer: { ...visitor, ip } })
    const byAddress = limited('conn.client_ip')
    assert.equal(await ask(byAddress, from('2001:db8::1')), undefined)
    assert.ok(await ask(byAddress, from('2001:db8::ffff:2')), 'the same /64')
    assert.equal(await ask(byAddress, from('2001:db8:0:1::1')), undefined)
    assert.equal(await ask(byAddress, from('192.0.2.1')), undefined)
    assert.equal(await ask(byAddress, from('192.0.2.2')), undefined)
    const byMore = limited("conn.client_ip + 'x'")
    for (const ip of ['2001:db8::1', '2001:db8::2']) assert.equal(await ask(byMore, from(ip)), undefined)
  })

  test('basic-auth', async () => {
    const phases = compile({ inbound: [on('true', 'basic-auth', { credentials: ['a:password'], realm: 'here' })] })
    const authorization = `Basic ${Buffer.from('a:password').toString('base64')}`
    assert.equal(await ask(phases, request({ headers: { authorization } })), undefined)
    assert.deepEqual(await ask(phases, request()), {
      refuse: 'CREDENTIALS_REQUIRED',
      headers: [['WWW-Authenticate', 'Basic realm="here"']],
    })
  })

  test('that identify a visitor cannot be bypassed by a failing condition', async () => {
    const fails = "req.headers['x'][0] != 'y'"
    for (const [type, config] of [
      ['basic-auth', { credentials: ['a:password'] }],
      ['verify-webhook', { provider: 'gitlab', secret: 'token' }],
    ] as const) {
      const phases = compile({ inbound: [on(fails, type, config)] })
      assert.deepEqual(await ask(phases, request()), { refuse: 'POLICY_FAILED' })
      assert.equal(await ask(phases, request({ headers: { x: 'y' } })), undefined)
    }
  })

  test('verify-webhook', async () => {
    const phases = compile({ inbound: [on('true', 'verify-webhook', { provider: 'gitlab', secret: 'token' })] })
    assert.equal(await ask(phases, request({ headers: { 'x-gitlab-token': 'token' } })), undefined)
    assert.deepEqual(await ask(phases, request()), { refuse: 'WEBHOOK_REFUSED' })
    const observed = { provider: 'gitlab', secret: 'token', enforce: false }
    assert.equal(await ask(compile({ inbound: [on('true', 'verify-webhook', observed)] }), request()), undefined)
  })

  test('circuit-breaker', async () => {
    const phases = compile({
      inbound: [on("req.method == 'GET'", 'circuit-breaker', { volume_threshold: 2, error_threshold: 0.5 })],
    })
    const failing = { status: 500, isFromUpstream: true, fault: undefined }
    for (const method of ['PUT', 'PUT', 'GET', 'GET']) {
      const ctx = request({ method })
      assert.equal(await ask(phases, ctx), undefined)
      phases.done?.(failing, ctx)
    }
    const refused = await ask(phases, request())
    assert.ok(refused && 'refuse' in refused && refused.refuse === 'CIRCUIT_OPEN')
    assert.equal(await ask(phases, request({ method: 'PUT' })), undefined)
  })

  test('log', async () => {
    const phases = compile({
      inbound: [
        on('true', 'log', {
          metadata: { a: 'x ${req.method}', n: '${1 + 1}', deep: { list: ['${conn.client_ip}', 1] } },
        }),
        on('true', 'log', { metadata: { b: true } }),
      ],
    })
    const ctx = request()
    await ask(phases, ctx)
    assert.deepEqual(JSON.parse(ctx.found.get('traffic_policy.logs') ?? ''), [
      { a: 'x GET', n: 2, deep: { list: ['192.0.2.7', 1] } },
      { b: true },
    ])
  })
})

describe('actions on responses', () => {
  test('change headers, replace the response, and read it', async () => {
    const phases = compile({
      outbound: [
        on("res.status_code == 200 && getResHeader('x-a') == ['1'] && res.headers['x-a'][0] == '1'", 'add-headers', {
          headers: { 'x-b': '${string(res.status_code)}' },
        }),
        { actions: [{ type: 'remove-headers', config: { headers: ['x-a', 'postern-error-code'] } }] },
        on('res.status_code >= 500', 'custom-response', { status_code: 503, content: '{"sorry": true}' }),
      ],
    })
    const came = response({ headers: { 'X-A': '1', 'Postern-Error-Code': 'x' } })
    assert.equal(await phases.response?.(came, request()), undefined)
    assert.deepEqual(
      [...came.headers],
      [
        ['Postern-Error-Code', 'x'],
        ['x-b', '200'],
      ],
    )
    assert.deepEqual(await phases.response?.(response({ status: 502 }), request()), {
      respond: { status: 503, headers: [['content-type', 'application/json']], body: '{"sorry": true}' },
    })
  })

  test('the status is a string in the older spelling', async () => {
    const phases = compile({
      outbound: [on("res.StatusCode < '200' || res.StatusCode > '300'", 'custom-response', { status_code: 222 })],
    })
    assert.equal(await phases.response?.(response({ status: 204 }), request()), undefined)
    const answer = await phases.response?.(response({ status: 404 }), request())
    assert.ok(answer && 'respond' in answer)
    assert.equal(answer.respond.status, 222)
  })

  test('compress-response, in either phase', async () => {
    for (const list of ['inbound', 'outbound'] as const) {
      const phases = compile({ [list]: [on('true', 'compress-response', { algorithms: ['br'] })] })
      const ctx = request({ headers: { 'accept-encoding': 'gzip, br' } })
      await phases.request?.(ctx)
      const came = response({ bodyLength: 1000 })
      await phases.response?.(came, ctx)
      assert.equal(came.headers.get('content-encoding'), 'br')
      assert.equal(came.encoders.length, 1)
    }
  })
})

describe('connections', () => {
  test('are closed on TCP edges', () => {
    const {
      accept,
      handshake: after,
      request: later,
    } = compile({ inbound: [on("conn.client_ip == '192.0.2.7'", 'deny')] }, { place: 'tcp' })
    const tcp = { edgeId: 'edgtcp_1', serverName: undefined }
    assert.deepEqual(accept?.(visitor, tcp), { refuse: 'CONNECTION_DENIED' })
    assert.equal(accept?.({ ...visitor, ip: '192.0.2.8' }, tcp), undefined)
    assert.equal(after ?? later, undefined)
  })

  test('are closed on TLS edges by the requested name, before a handshake', () => {
    const { accept } = compile(
      { inbound: [on("conn.tls.sni == 'app.example.com'", 'close-connection')] },
      { place: 'tls' },
    )
    assert.deepEqual(accept?.(visitor, reached), { refuse: 'CONNECTION_DENIED' })
    assert.equal(accept?.(visitor, { ...reached, serverName: 'b.example.com' }), undefined)
  })

  test('are closed on TLS edges after the handshake, by what it showed', () => {
    const { accept, handshake: judge } = compile(
      { inbound: [on("conn.tls.version == '1.3'", 'deny')] },
      { place: 'tls' },
    )
    assert.equal(accept, undefined)
    assert.deepEqual(judge?.(handshake(), visitor, reached), { refuse: 'CONNECTION_DENIED' })
    assert.equal(judge?.({ ...handshake(), version: 'TLSv1.2' }, visitor, reached), undefined)
  })

  test('are restricted by address', () => {
    const { accept } = compile({ inbound: [on('true', 'restrict-ips', { allow: ['10.0.0.0/8'] })] }, { place: 'tcp' })
    assert.deepEqual(accept?.(visitor, reached), { refuse: 'IP_REFUSED' })
  })
})

test('a `host` that values of the visitor make no host is an error of the rule', async () => {
  const set = compile({ inbound: [on('true', 'add-headers', { headers: { Host: "${getReqHeader('x')[0]}" } })] })
  for (const host of ['app.internal', 'my_app:8080', '[::1]:80', '10.0.0.1', 'localhost']) {
    const ctx = request({ headers: { x: host } })
    assert.equal(await ask(set, ctx), undefined, host)
    assert.equal(ctx.replacedHost, host)
  }
  for (const host of ['a b', 'a.example/x', 'a.example@b', 'a,b', 'a:b', ' a', '']) {
    const ctx = request({ headers: { x: host } })
    assert.deepEqual(await ask(set, ctx), { refuse: 'POLICY_FAILED' }, host)
    assert.equal(ctx.replacedHost, undefined)
  }
})
