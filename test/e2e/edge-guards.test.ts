/** Modules that refuse visitors: each is set through the API and tested over real sockets. */
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { until } from '../support/until.ts'
import { clientHello } from './edges/client-hello.ts'
import { listener, type Recorder, recorder } from './edges/upstreams.ts'
import { askHttp1, dial, dialled, readToEnd, versions } from './edges/visitor.ts'
import { type HttpsEdge, World } from './edges/world.ts'

let world: World
let service: Recorder
before(async () => {
  // On both families at once, so that visitors over IPv4 come with mapped addresses.
  world = await World.start({ flags: { 'https-listen': '[::]:0', 'tcp-listen': '::' } })
  service = await recorder(world)
})
after(() => world.stop())

/** The status and code of an answer, and whether the request reached the service. */
async function outcome(...[name, about]: Parameters<World['ask']>): Promise<string> {
  const before = service.seen.length
  const { status, code } = await world.ask(name, about)
  const isAsked = service.seen.length > before
  assert.equal(isAsked, code === undefined, 'a refusal reached the service, or an answer did not come from it')
  return `${status}${code === undefined ? '' : ` ${code}`}`
}

describe('a user agent filter', () => {
  const cases: readonly [filter: { allow?: string[]; deny?: string[] }, agent: string | undefined, passes: boolean][] =
    [
      [{ allow: ['(?i)google-images'], deny: ['(?i)google'] }, 'Google-Images/1', true],
      [{ allow: ['(?i)google-images'], deny: ['(?i)google'] }, 'Googlebot/2', false],
      [{ allow: ['(?i)google-images'], deny: ['(?i)google'] }, 'curl/8', true],
      [{ allow: ['(?i)google-images'], deny: ['(?i)google'] }, undefined, false],
      [{ allow: ['^$'] }, undefined, true],
      [{ allow: ['^$'] }, '', true],
      [{ allow: ['Foo'] }, 'Bar', true],
      [{}, 'anything', true],
      [{}, undefined, false],
    ]
  const edges = new Map<string, HttpsEdge>()
  const edgeWith = async (filter: object): Promise<HttpsEdge> => {
    const key = JSON.stringify(filter)
    const made = edges.get(key) ?? (await world.httpsTo(service, { user_agent_filter: filter }))
    edges.set(key, made)
    return made
  }
  for (const version of versions) {
    for (const [filter, agent, passes] of cases) {
      const who = agent === undefined ? 'nobody in particular' : `'${agent}'`
      test(`${JSON.stringify(filter)} ${passes ? 'lets in' : 'keeps out'} ${who} over HTTP/${version}`, async () => {
        const { name } = await edgeWith(filter)
        const headers = agent === undefined ? {} : { 'user-agent': agent }
        assert.equal(await outcome(name, { version, headers }), passes ? '200' : '403 ERR_USER_AGENT_REFUSED')
      })
    }

    test(`judges each of several headers over HTTP/${version}`, async () => {
      const { name } = await edgeWith({ deny: ['bad'] })
      assert.equal(await outcome(name, { version, headers: { 'user-agent': ['good', 'fine'] } }), '200')
      for (const agents of [
        ['good', 'bad'],
        ['bad', 'good'],
      ]) {
        const refused = await outcome(name, { version, headers: { 'user-agent': agents } })
        assert.equal(refused, '403 ERR_USER_AGENT_REFUSED')
      }
    })
  }
})

describe('an IP restriction', () => {
  /** From these addresses, and whether an edge with each policy lets them in. */
  const cases: readonly [what: string, policies: { allow?: string[]; deny?: string[] }[], Record<string, boolean>][] = [
    [
      'a network but one of its addresses',
      [{ allow: ['127.0.0.0/24'] }, { deny: ['127.0.0.4/32'] }],
      { '127.0.0.4': false, '127.0.0.9': true, '127.0.1.9': false, '::1': false },
    ],
    ['nobody, without rules', [{}], { '127.0.0.1': false, '::1': false }],
    ['nobody, with denials only', [{ deny: ['10.0.0.0/8'] }], { '127.0.0.1': false, '::1': false }],
    ['all of IPv4', [{ allow: ['0.0.0.0/0'] }], { '127.0.0.1': true, '127.0.0.9': true, '::1': false }],
    ['all of IPv6', [{ allow: ['::/0'] }], { '127.0.0.1': false, '::1': true }],
    [
      'one address of IPv6',
      [{ allow: ['::1/128', '127.0.0.0/8'] }, { deny: ['127.0.0.0/8'] }],
      { '127.0.0.1': false, '::1': true },
    ],
  ]
  for (const [what, policies, addresses] of cases) {
    test(`lets in ${what}`, async (t) => {
      const ids: string[] = []
      for (const policy of policies) ids.push(await world.ipPolicy(policy))
      const ip_restriction = { ip_policy_ids: ids }
      const https = await world.httpsTo(service, { ip_restriction })
      const bytes = await listener(t, (socket) => socket.end('hello'))
      const backend = await world.toAddress(bytes)
      const tcp = await world.tcpEdge({ backend, ip_restriction })
      const tls = await world.tlsEdge({ backend, ip_restriction, tls_termination: { terminate_at: 'edge' } })
      const through = await world.tlsEdge({ backend, ip_restriction })

      for (const [from, passes] of Object.entries(addresses)) {
        for (const version of versions) {
          const said = await outcome(https.name, {
            version,
            from,
            headers: { 'x-forwarded-for': '127.0.0.9', forwarded: 'for=127.0.0.9' },
          })
          assert.equal(said, passes ? '200' : '403 ERR_IP_REFUSED', `${from} over HTTP/${version}`)
        }
        const before = bytes.sockets.length
        const port = tcp.port
        const plain = connect({ port, host: from.includes(':') ? '::1' : '127.0.0.1', localAddress: from })
        plain.on('error', () => {})
        assert.equal((await readToEnd(plain)).toString(), passes ? 'hello' : '', `${from} on a TCP edge`)
        const secured = dial({ name: tls.name, port: tls.port, ca: world.platform.ca }, { from })
        assert.equal((await readToEnd(secured)).toString(), passes ? 'hello' : '', `${from} on a TLS edge`)
        const passed = connect({
          port: through.port,
          host: from.includes(':') ? '::1' : '127.0.0.1',
          localAddress: from,
        })
        passed.on('error', () => {})
        passed.write(await helloFor(through.name))
        assert.equal((await readToEnd(passed)).toString(), passes ? 'hello' : '', `${from} past TLS`)
        assert.equal(bytes.sockets.length - before, passes ? 3 : 0, 'a refusal comes before any dial')
      }
    })
  }

  test('applies to the next request of a connection that was already open', async () => {
    const policy = await world.ipPolicy({ allow: ['127.0.0.0/8'] })
    const { name } = await world.httpsTo(service, { ip_restriction: { ip_policy_ids: [policy] } })
    const listenerName = { name, port: world.platform.httpsPort, ca: world.platform.ca }
    const [one, two] = [await dialled(listenerName), await dialled(listenerName, { from: '127.0.0.2' })]
    assert.deepEqual(
      [(await askHttp1(one, listenerName)).status, (await askHttp1(two, listenerName)).status],
      [200, 200],
    )
    await world.api.create('/ip_policy_rules', { cidr: '127.0.0.1/32', action: 'deny', ip_policy_id: policy })
    await world.inForce()
    assert.deepEqual(
      [(await askHttp1(one, listenerName)).code, (await askHttp1(two, listenerName)).code],
      ['ERR_IP_REFUSED', undefined],
    )
    one.destroy()
    two.destroy()
  })
})

function helloFor(name: string): Promise<Buffer> {
  return clientHello((port) => dial({ name, port, ca: world.platform.ca }))
}

describe('webhook verification', () => {
  const SECRET = 'secret of a test'
  const sign = (body: string | Buffer, secret = SECRET) =>
    `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`
  let edge: HttpsEdge
  let heard: string[]
  before(async () => {
    heard = []
    const hears = await recorder(world, (request, response) => {
      let body = ''
      request.setEncoding('utf8').on('data', (text) => {
        body += text
      })
      request.on('end', () => {
        heard.push(body)
        response.end('thanks')
      })
    })
    edge = await world.httpsTo(hears, { webhook_verification: { provider: 'github', secret: SECRET } })
  })

  for (const version of versions) {
    const post = (body: string | Buffer, signature?: string) =>
      world.ask(edge.name, {
        version,
        method: 'POST',
        body,
        headers: signature === undefined ? {} : { 'x-hub-signature-256': signature },
      })

    test(`lets in a signed webhook with its whole body, over HTTP/${version}`, async () => {
      const body = JSON.stringify({ a: 'ü'.repeat(100_000) })
      assert.equal((await post(body, sign(body))).text, 'thanks')
      assert.equal(heard.at(-1), body)
    })

    test(`keeps out a wrong or missing signature, over HTTP/${version}`, async () => {
      const before = heard.length
      for (const signature of [undefined, '', 'sha256=', sign('{}', 'other'), sign('other'), sign('{}').slice(0, -1)]) {
        const { status, code } = await post('{}', signature)
        assert.deepEqual([status, code], [403, 'ERR_WEBHOOK_REFUSED'], String(signature))
      }
      assert.equal(heard.length, before)
    })

    test(`keeps out a body that is too large to be checked, over HTTP/${version}`, async () => {
      const body = Buffer.alloc(10 * 1024 * 1024 + 1, 'a')
      const { status, code } = await post(body, sign(body))
      assert.deepEqual([status, code], [413, 'ERR_BODY_TOO_LARGE_TO_CHECK'])
    })
  }

  const length = 14 * 1024 * 1024
  for (const [framing, bytes] of [
    [`Content-Length: ${length}`, Buffer.alloc(length, 'a')],
    ['Transfer-Encoding: chunked', `${length.toString(16)}\r\n${'a'.repeat(length)}\r\n0\r\n\r\n`],
  ] as const) {
    test(`says so to a visitor that reads only when everything is sent, and closes: ${framing}`, async () => {
      const { httpsPort: port, ca } = world.platform
      const socket = await dialled({ name: edge.name, port, ca })
      const signature = `X-Hub-Signature-256: ${sign('x')}`
      socket.write(`POST / HTTP/1.1\r\nHost: ${edge.name}\r\n${signature}\r\n${framing}\r\n\r\n`)
      await new Promise<void>((resolve, reject) => {
        socket.on('error', reject)
        socket.write(bytes, () => resolve())
      })
      const text = (await readToEnd(socket)).toString('latin1')
      assert.match(text, /^HTTP\/1\.1 413 .*\r\nconnection: close\r\n.*ERR_BODY_TOO_LARGE_TO_CHECK/is)
    })
  }
})

describe('an early answer to a chunked upload', () => {
  const policy = (action: object) => ({
    traffic_policy: { value: JSON.stringify({ on_http_request: [{ actions: [action] }] }) },
  })
  const length = 4 * 1024 * 1024
  const cases: readonly [what: string, status: number, modules: object][] = [
    ['of a module', 403, { user_agent_filter: { deny: ['bad'] } }],
    ['of a policy', 401, policy({ type: 'deny', config: { status_code: 401 } })],
    ['that redirects', 307, policy({ type: 'redirect', config: { to: 'https://else.test/', status_code: 307 } })],
  ]
  for (const [what, status, modules] of cases) {
    test(`says to a visitor that reads only when everything is sent that the connection ends: one ${what}`, async () => {
      const { name } = await world.httpsTo(service, modules)
      const { httpsPort: port, ca } = world.platform
      const socket = await dialled({ name, port, ca })
      const lines = [`Host: ${name}`, 'User-Agent: bad', 'Transfer-Encoding: chunked']
      socket.write(`POST / HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`)
      await new Promise<void>((resolve, reject) => {
        socket.on('error', reject)
        socket.write(`${length.toString(16)}\r\n${'a'.repeat(length)}\r\n0\r\n\r\n`, () => resolve())
      })
      const text = (await readToEnd(socket)).toString('latin1')
      assert.match(text, new RegExp(`^HTTP/1\\.1 ${status} .*\r\nconnection: close\r\n`, 'is'))
    })
  }
})

describe('a circuit breaker', () => {
  for (const version of versions) {
    test(`stops requests to a failing service, and later tries one, over HTTP/${version}`, async (t) => {
      let status = 500
      const failing = await recorder(t, (_, response) => {
        response.statusCode = status
        response.end()
      })
      const { name } = await world.httpsTo(failing, {
        circuit_breaker: { volume_threshold: 4, error_threshold_percentage: 0.5, tripped_duration: 1 },
      })
      const ask = async () => (await world.ask(name, { version })).code ?? 'passed'
      for (let i = 0; i < 4; i++) assert.equal(await ask(), 'passed')
      // A request is counted when its last byte is out, which is after the visitor has it.
      await until('the circuit is open', async () => (await ask()) === 'ERR_CIRCUIT_OPEN')
      const { length } = failing.seen
      const refused = await world.ask(name, { version })
      assert.deepEqual([refused.status, refused.headers['retry-after']], [503, '1'])
      assert.equal(failing.seen.length, length, 'the service gets no requests')

      await until('one request is let through', async () => (await ask()) === 'passed')
      assert.equal(await ask(), 'ERR_CIRCUIT_OPEN', 'it still fails')
      assert.equal(failing.seen.length, length + 1)
      status = 200
      await until('another one is let through', async () => (await ask()) === 'passed')
      for (let i = 0; i < 4; i++) assert.equal(await ask(), 'passed')
    })
  }

  test('counts a service that cannot be reached as failing', async () => {
    const { name } = await world.httpsEdge({
      routes: [
        {
          backend: await world.toAddress({ address: '127.0.0.1:1' }),
          circuit_breaker: { volume_threshold: 2, error_threshold_percentage: 0.5 },
        },
      ],
    })
    await until('the circuit is open', async () => (await world.ask(name)).code === 'ERR_CIRCUIT_OPEN')
  })
})

describe('guards on one route', () => {
  test('run in order, the cheapest first', async () => {
    const strangers = await world.ipPolicy({ allow: ['127.0.0.1/32'] })
    const { name } = await world.httpsTo(service, {
      ip_restriction: { ip_policy_ids: [strangers] },
      user_agent_filter: { deny: ['bad'] },
      webhook_verification: { provider: 'gitlab', secret: 'token' },
      websocket_tcp_converter: {},
    })
    const good = { 'user-agent': 'good', 'x-gitlab-token': 'token' }
    const bad = { 'user-agent': 'bad' }
    assert.equal(await outcome(name, { headers: bad, from: '127.0.0.2' }), '403 ERR_IP_REFUSED')
    assert.equal(await outcome(name, { headers: bad }), '403 ERR_USER_AGENT_REFUSED')
    assert.equal(await outcome(name, { headers: { 'user-agent': 'good' } }), '403 ERR_WEBHOOK_REFUSED')
    assert.equal(await outcome(name, { headers: good }), '400 ERR_WEBSOCKET_REQUIRED')
  })
})

describe('a policy that denies', () => {
  const policy = { inbound: [{ actions: [{ type: 'deny' }] }] }
  for (const version of versions) {
    test(`keeps everybody out while it is enabled, over HTTP/${version}`, async () => {
      const { name, routes } = await world.httpsTo(service, { policy })
      for (const method of ['GET', 'OPTIONS']) assert.equal((await world.ask(name, { version, method })).status, 403)
      await world.api.put(`${routes[0]?.path}/policy`, { ...policy, enabled: false })
      await world.inForce()
      assert.equal(await outcome(name, { version }), '200')
    })
  }

  test('closes connections of TCP and TLS edges before any dial', async (t) => {
    const bytes = await listener(t, (socket) => socket.end('hello'))
    const backend = await world.toAddress(bytes)
    const deny = { inbound: [{ expressions: ["conn.client_ip == '127.0.0.1'"], actions: [{ type: 'deny' }] }] }
    const tcp = await world.tcpEdge({ backend, policy: deny })
    const tls = await world.tlsEdge({ backend, policy: deny, tls_termination: { terminate_at: 'edge' } })
    const dialTcp = async () => {
      const socket = connect(tcp.port, '127.0.0.1')
      await once(socket, 'connect')
      return (await readToEnd(socket)).toString()
    }
    const dialTls = async () =>
      (await readToEnd(dial({ name: tls.name, port: tls.port, ca: world.platform.ca }))).toString()
    assert.deepEqual([await dialTcp(), await dialTls(), bytes.sockets.length], ['', '', 0])
    await world.api.put(`${tcp.path}/policy`, { ...deny, enabled: false })
    await world.api.delete(`${tls.path}/policy`)
    await world.inForce()
    assert.deepEqual([await dialTcp(), await dialTls()], ['hello', 'hello'])
  })
})

test('every verdict is one line in the log', async (t) => {
  const strangers = await world.ipPolicy({ allow: ['192.0.2.0/24'] })
  const ip_restriction = { ip_policy_ids: [strangers] }
  const edge = await world.httpsTo(service, { user_agent_filter: { deny: ['bad'] } })
  const bytes = await listener(t, (socket) => socket.end('hello'))
  const backend = await world.toAddress(bytes)
  const [served, refused] = [await world.tcpEdge({ backend }), await world.tcpEdge({ backend, ip_restriction })]
  for (const version of versions) {
    await world.ask(edge.name, { version, path: '/a?secret', headers: { 'user-agent': 'bad' }, from: '127.0.0.6' })
    await world.ask(edge.name, { version, path: '/b', headers: { 'user-agent': 'good' } })
  }
  for (const { port } of [served, refused]) await readToEnd(connect(port, '127.0.0.1').on('error', () => {}))
  const lines = await until('all of them are logged', () => {
    const ids = [edge.id, served.id, refused.id]
    const logged = [...world.logged('request'), ...world.logged('connection')].filter((line) => ids.includes(line.edge))
    return logged.length >= 6 && logged
  })
  const facts = lines.map((line) =>
    JSON.stringify([line.edge, line.http, line.ip, line.path, line.status, line.fault, line.decided]),
  )
  const requests = versions.flatMap((version) => [
    [edge.id, version, '127.0.0.6', '/a', 403, 'ERR_USER_AGENT_REFUSED', { 'user_agent_filter.decision': 'deny' }],
    [edge.id, version, '127.0.0.1', '/b', 200, undefined, { 'user_agent_filter.decision': 'allow' }],
  ])
  const connections = [
    [served.id, undefined, '127.0.0.1', undefined, undefined, undefined, undefined],
    [refused.id, undefined, '127.0.0.1', undefined, undefined, 'ERR_IP_REFUSED', undefined],
  ]
  // Logged when they are over, in any order.
  assert.deepEqual(facts.sort(), [...requests, ...connections].map((each) => JSON.stringify(each)).sort())
  assert.deepEqual(
    lines.filter((line) => JSON.stringify(line).includes('secret')),
    [],
    'a query may hold secrets',
  )
})
