/** Every action of a traffic policy over real sockets: on routes over both versions of HTTP, and on TCP and TLS edges. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import ngrok from '@ngrok/ngrok'
import { until } from '../support/until.ts'
import { type Recorder, recorder, shouts } from './edges/upstreams.ts'
import { type Answer, type Ask, dial, versions } from './edges/visitor.ts'
import { World } from './edges/world.ts'

let world: World
let service: Recorder
before(async () => {
  world = await World.start()
  service = await recorder(world, (request, response) => {
    response.statusCode = request.url?.startsWith('/fail') ? 500 : 200
    response.setHeader('x-from', 'service')
    response.setHeader('content-type', 'text/plain')
    response.end('hello '.repeat(100))
  })
})
after(() => world.stop())

interface Case {
  readonly action: string
  readonly config?: Record<string, unknown>
  readonly phase: 'on_http_request' | 'on_http_response'
  readonly when?: string
  /** Requests one after the other, and what is looked at in each answer. */
  readonly asks: readonly (readonly [Ask, (answer: Answer) => void])[]
}

const reached = (answer: Answer): void => {
  assert.equal(answer.status, 200, answer.text)
  assert.equal(answer.headers['x-from'], 'service')
}
const refused =
  (status: number, code?: string) =>
  (answer: Answer): void => {
    assert.equal(answer.status, status, answer.text)
    if (code !== undefined) assert.equal(answer.code, code)
    assert.equal(answer.headers['x-from'], undefined)
  }
const basic = `Basic ${Buffer.from('jane:password').toString('base64')}`

const cases: readonly Case[] = [
  { action: 'deny', phase: 'on_http_request', asks: [[{}, refused(403)]] },
  { action: 'deny', phase: 'on_http_request', when: "req.method == 'PUT'", asks: [[{}, reached]] },
  {
    action: 'custom-response',
    config: { status_code: 418, body: 'I am ${req.host}', headers: { 'x-a': '${conn.client_ip}' } },
    phase: 'on_http_request',
    asks: [
      [
        { from: '127.0.0.9' },
        (answer) => {
          refused(418)(answer)
          assert.match(answer.text, /^I am e\d+\.edge\.test$/)
          assert.equal(answer.headers['x-a'], '127.0.0.9')
        },
      ],
    ],
  },
  {
    action: 'custom-response',
    config: { status_code: 503, body: 'later' },
    phase: 'on_http_response',
    when: 'res.status_code >= 500',
    asks: [
      [{}, reached],
      [{ path: '/fail' }, (answer) => assert.deepEqual([answer.status, answer.text], [503, 'later'])],
    ],
  },
  {
    action: 'redirect',
    config: { from: '/old/(\\w+)', to: '/new/$1', status_code: 301 },
    phase: 'on_http_request',
    asks: [
      [{ path: '/other' }, reached],
      [
        { path: '/old/page?q=1' },
        (answer) => {
          refused(301)(answer)
          assert.match(String(answer.headers.location), /^https:\/\/e\d+\.edge\.test\/new\/page\?q=1$/)
        },
      ],
    ],
  },
  {
    action: 'url-rewrite',
    config: { from: '/v1/', to: '/v2/' },
    phase: 'on_http_request',
    asks: [
      [
        { path: '/v1/a?b=c' },
        (answer) => {
          reached(answer)
          assert.equal(service.last.url, '/v2/a?b=c')
        },
      ],
      [{ path: '/v1/%2e%2e/x' }, refused(400, 'ERR_AMBIGUOUS_PATH')],
    ],
  },
  {
    action: 'add-headers',
    config: { headers: { 'X-Who': '${req.method} ${conn.client_ip}' } },
    phase: 'on_http_request',
    asks: [
      [
        { headers: { 'x-who': 'me' } },
        (answer) => {
          reached(answer)
          assert.deepEqual(service.last.all('x-who'), ['me', 'GET 127.0.0.1'])
        },
      ],
    ],
  },
  {
    action: 'add-headers',
    config: { headers: { 'x-status': '${res.status_code}' } },
    phase: 'on_http_response',
    asks: [[{}, (answer) => assert.equal(answer.headers['x-status'], '200')]],
  },
  {
    action: 'remove-headers',
    config: { headers: ['X-Secret'] },
    phase: 'on_http_request',
    asks: [
      [
        { headers: { 'x-secret': '1' } },
        (answer) => {
          reached(answer)
          assert.deepEqual(service.last.all('x-secret'), [])
        },
      ],
    ],
  },
  {
    action: 'remove-headers',
    config: { headers: ['x-from'] },
    phase: 'on_http_response',
    asks: [[{}, (answer) => assert.deepEqual([answer.status, answer.headers['x-from']], [200, undefined])]],
  },
  {
    action: 'restrict-ips',
    config: { allow: ['127.0.0.0/30'], deny: ['127.0.0.2/32'] },
    phase: 'on_http_request',
    asks: [
      [{ from: '127.0.0.1' }, reached],
      [{ from: '127.0.0.2' }, refused(403, 'ERR_IP_REFUSED')],
      [{ from: '127.0.0.9' }, refused(403, 'ERR_IP_REFUSED')],
    ],
  },
  {
    action: 'rate-limit',
    config: { name: 'each', capacity: 1, rate: '24h', bucket_key: ['conn.client_ip'] },
    phase: 'on_http_request',
    asks: [
      [{ from: '127.0.0.1' }, reached],
      [
        { from: '127.0.0.1' },
        (answer) => {
          refused(429, 'ERR_RATE_LIMITED')(answer)
          assert.match(String(answer.headers['retry-after']), /^\d+$/)
        },
      ],
      [{ from: '127.0.0.2' }, reached],
    ],
  },
  {
    action: 'basic-auth',
    config: { credentials: ['jane:password'], realm: 'staff' },
    phase: 'on_http_request',
    asks: [
      [
        {},
        (answer) => {
          refused(401, 'ERR_CREDENTIALS_REQUIRED')(answer)
          assert.equal(answer.headers['www-authenticate'], 'Basic realm="staff"')
        },
      ],
      [{ headers: { authorization: basic } }, reached],
    ],
  },
  {
    action: 'verify-webhook',
    config: { provider: 'gitlab', secret: 'token' },
    phase: 'on_http_request',
    asks: [
      [{}, refused(403, 'ERR_WEBHOOK_REFUSED')],
      [{ headers: { 'x-gitlab-token': 'token' } }, reached],
    ],
  },
  {
    action: 'circuit-breaker',
    config: { volume_threshold: 1, tripped_duration: '1h' },
    phase: 'on_http_request',
    asks: [
      [{ path: '/fail' }, (answer) => assert.equal(answer.status, 500)],
      [{}, refused(503, 'ERR_CIRCUIT_OPEN')],
    ],
  },
  {
    action: 'compress-response',
    config: { algorithms: ['gzip'] },
    phase: 'on_http_response',
    asks: [
      [{}, (answer) => assert.equal(answer.headers['content-encoding'], undefined)],
      [
        { headers: { 'accept-encoding': 'br, gzip' } },
        (answer) => {
          assert.equal(answer.headers['content-encoding'], 'gzip')
          assert.equal(gunzipSync(answer.body).toString(), 'hello '.repeat(100))
        },
      ],
    ],
  },
  {
    action: 'log',
    config: { metadata: { who: '${conn.client_ip}' } },
    phase: 'on_http_request',
    asks: [[{}, reached]],
  },
]

for (const version of versions) {
  describe(`on a route, over HTTP/${version}`, () => {
    for (const { action, config, phase, when, asks } of cases) {
      test(`${action} in ${phase}${when === undefined ? '' : ` when ${when}`}`, async () => {
        const rule = { ...(when !== undefined && { expressions: [when] }), actions: [{ type: action, config }] }
        const { name } = await world.httpsTo(service, {
          traffic_policy: { value: JSON.stringify({ [phase]: [rule] }) },
        })
        for (const [about, look] of asks) look(await world.ask(name, { version, ...about }))
      })
    }

    test('a custom response of a request passes the rules for responses, a denial does not', async () => {
      const outbound = [{ actions: [{ type: 'add-headers', config: { headers: { 'x-seen': 'yes' } } }] }]
      const answer = async (type: string): Promise<Answer> => {
        const { name } = await world.httpsTo(service, { policy: { inbound: [{ actions: [{ type }] }], outbound } })
        return world.ask(name, { version })
      }
      assert.equal((await answer('custom-response')).headers['x-seen'], 'yes')
      assert.equal((await answer('deny')).headers['x-seen'], undefined)
    })
  })
}

test('close-connection ends the connection of a request without an answer', async () => {
  const { name } = await world.httpsTo(service, { policy: { inbound: [{ actions: [{ type: 'close-connection' }] }] } })
  await assert.rejects(world.ask(name))
})

test('an endpoint of an agent has the policy that its bind brings', async (t) => {
  const { agents, authtoken, ca } = world.platform
  const session = await new ngrok.SessionBuilder()
    .authtoken(authtoken)
    .serverAddr(agents)
    .caCert(Buffer.from(ca))
    .connect()
  t.after(() => session.close())
  const name = world.name()
  const rule = (type: string, expression: string, config: object) => ({
    expressions: [expression],
    actions: [{ type, config }],
  })
  const policy = {
    on_http_request: [rule('deny', "req.url.path == '/no'", { status_code: 404 })],
    on_http_response: [rule('add-headers', 'res.status_code == 200', { headers: { 'x-policy': '${req.method}' } })],
  }
  const endpoint = session.httpEndpoint().domain(name).trafficPolicy(JSON.stringify(policy))
  await endpoint.listenAndForward(`http://${service.address}`)
  refused(404)(await world.ask(name, { path: '/no' }))
  const answer = await world.ask(name, { path: '/yes' })
  reached(answer)
  assert.equal(answer.headers['x-policy'], 'GET')
})

describe('on TCP and TLS edges', () => {
  const from = (ip: string) => ({
    inbound: [{ expressions: [`conn.client_ip == '${ip}'`], actions: [{ type: 'deny' }] }],
  })

  test('deny closes a connection before the service is dialled', async () => {
    const upstream = await shouts(world)
    const { port } = await world.tcpEdge({ backend: await world.toAddress(upstream), policy: from('127.0.0.3') })
    const talk = async (localAddress: string): Promise<string> => {
      const socket = connect({ port, host: '127.0.0.1', localAddress }).on('error', () => {})
      socket.write('a')
      const said = await Promise.race([once(socket, 'data'), once(socket, 'close').then(() => ['closed'])])
      socket.destroy()
      return String(said[0])
    }
    assert.equal(await talk('127.0.0.3'), 'closed')
    assert.equal(upstream.sockets.length, 0)
    assert.equal(await talk('127.0.0.4'), 'A')
  })

  for (const [what, rule, isEnded] of [
    ['passed through', "conn.tls.sni.startsWith('e') && conn.client_ip == '127.0.0.3'", false],
    ['ended here', "conn.tls.version == '1.3' && conn.client_ip == '127.0.0.3'", true],
  ] as const) {
    test(`a TLS edge whose TLS is ${what} closes connections by its rules`, async () => {
      const upstream = await shouts(world)
      const { name, port } = await world.tlsEdge({
        backend: await world.toAddress(upstream),
        policy: { inbound: [{ expressions: [rule], actions: [{ type: 'deny' }] }] },
        ...(isEnded && { tls_termination: { terminate_at: 'edge' } }),
      })
      const visit = async (address: string): Promise<void> => {
        const socket = dial({ name, port, ca: world.platform.ca }, { from: address })
        socket.on('secureConnect', () => socket.write('a'))
        const closed = new Promise((resolve) => socket.once('close', resolve))
        await Promise.race([closed, until('the service is reached', () => upstream.sockets.length > 0)])
        socket.destroy()
      }
      await visit('127.0.0.3')
      assert.equal(upstream.sockets.length, 0)
      await visit('127.0.0.4')
      assert.equal(upstream.sockets.length, 1)
    })
  }
})
