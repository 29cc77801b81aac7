/** Which edge and route a visitor reaches: names, hosts, paths, the plain listener, and refusals. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { clientHello } from './edges/client-hello.ts'
import { recorder } from './edges/upstreams.ts'
import { type Answer, askHttp1, askHttp2, dialled, http2Over, readToEnd, versions } from './edges/visitor.ts'
import { type HttpsEdge, MARK, World } from './edges/world.ts'

let world: World
before(async () => {
  world = await World.start()
})
after(() => world.stop())

/** A `backend` module that answers `body`. */
const says = (body: string) => world.toBackend('http_response', { body })

describe('routes', () => {
  let edge: HttpsEdge
  before(async () => {
    edge = await world.httpsEdge({
      routes: [
        { match: '/', backend: await says('all') },
        { match: '/api', backend: await says('api') },
        { match: '/api/x', match_type: 'exact_path', backend: await says('exact') },
      ],
    })
  })

  /** D41 */
  const paths: readonly [path: string, route: string][] = [
    ['/api/x', 'exact'],
    ['/api/x/', 'api'],
    ['/apiary', 'api'],
    ['/z', 'all'],
    ['/', 'all'],
    ['/API', 'all'],
    ['/api/x?y=1', 'exact'],
    ['/api/y%2fx', 'api'],
    ['/z/../y', 'all'],
    ['/.well-known/%E2%82%AC', 'all'],
  ]
  for (const version of versions) {
    for (const [path, route] of paths) {
      test(`${path} is served by ${route} over HTTP/${version}`, async () => {
        const { status, text } = await world.ask(edge.name, { version, path })
        assert.deepEqual([status, text], [200, route])
      })
    }

    /** D63 */
    for (const path of ['/%61pi/x', '/api/%78', '/z/../api/y', '/z/%2e%2e/api/./x', '/z/..%2fapi/x', '//api']) {
      test(`${path}, which could match several routes, is refused over HTTP/${version}`, async () => {
        const { status, code } = await world.ask(edge.name, { version, path })
        assert.deepEqual([status, code], [400, 'ERR_AMBIGUOUS_PATH'])
      })
    }

    for (const path of ['/%', '/%zz', '/a%00b', '/%ff']) {
      test(`${path}, which is malformed, is refused over HTTP/${version}`, async () => {
        const { status, code } = await world.ask(edge.name, { version, path })
        assert.deepEqual([status, code], [400, 'ERR_BAD_VISITOR_REQUEST'])
      })
    }

    test(`a path that no route matches is a 404 over HTTP/${version}`, async () => {
      const { name } = await world.httpsEdge({ routes: [{ match: '/only', backend: await says('only') }] })
      const found = await world.ask(name, { version, path: '/only/this' })
      const missed = await world.ask(name, { version, path: '/other' })
      assert.equal(found.text, 'only')
      assert.deepEqual([missed.status, missed.code], [404, 'ERR_NO_ROUTE'])
    })
  }

  test('a route without a backend answers 503, but only to visitors that its modules let in', async () => {
    const { name } = await world.httpsEdge({ routes: [{ user_agent_filter: { deny: ['bad'] } }] })
    for (const version of versions) {
      const passed = await world.ask(name, { version, headers: { 'user-agent': 'good' } })
      const refused = await world.ask(name, { version, headers: { 'user-agent': 'bad' } })
      assert.deepEqual([passed.status, passed.code], [503, 'ERR_NO_BACKEND'])
      assert.deepEqual([refused.status, refused.code], [403, 'ERR_USER_AGENT_REFUSED'])
    }
  })
})

describe('names', () => {
  before(async () => {
    await world.httpsEdge({ names: ['*.wild.test'], routes: [{ backend: await says('wildcard') }] })
    await world.httpsEdge({ names: ['a.wild.test', 'c.other.test'], routes: [{ backend: await says('exact') }] })
    await world.httpsEdge({ names: ['*.deep.wild.test'], routes: [{ backend: await says('longer wildcard') }] })
  })

  const names: readonly [name: string, edge: string][] = [
    ['a.wild.test', 'exact'],
    ['c.other.test', 'exact'],
    ['b.wild.test', 'wildcard'],
    ['x.y.wild.test', 'wildcard'],
    ['b.a.wild.test', 'wildcard'],
    ['x.deep.wild.test', 'longer wildcard'],
    ['deep.wild.test', 'wildcard'],
    ['A.Wild.Test', 'exact'],
  ]
  for (const version of versions) {
    for (const [name, edge] of names) {
      test(`${name} is served by the ${edge} edge over HTTP/${version}`, async () => {
        const { status, text } = await world.ask(name, { version })
        assert.deepEqual([status, text], [200, edge])
      })
    }

    for (const name of ['wild.test', 'nobody.test', 'test']) {
      test(`${name}, which no edge serves, gets an error page over HTTP/${version}`, async () => {
        // With the certificate of the server's own domain: none is made for names that strangers choose.
        const { status, code } = await world.ask(name, { version, tls: { rejectUnauthorized: false } })
        assert.deepEqual([status, code], [404, 'ERR_ENDPOINT_OFFLINE'])
      })
    }

    for (const host of ['a.wild.test:443', 'A.WILD.test', 'a.wild.test.', 'c.other.test']) {
      test(`a Host of ${host} reaches the edge of the connection over HTTP/${version}`, async () => {
        const { status, text } = await world.ask('a.wild.test', { version, host })
        assert.deepEqual([status, text], [200, 'exact'])
      })
    }

    for (const host of ['b.wild.test', MARK, 'x.deep.wild.test']) {
      test(`a Host of ${host}, which belongs to another edge, is refused over HTTP/${version}`, async () => {
        const { status, code } = await world.ask('a.wild.test', { version, host })
        assert.deepEqual([status, code], [421, 'ERR_MISDIRECTED'])
      })
    }

    test(`a Host that nobody serves is a 404 over HTTP/${version}`, async () => {
      const { status, code } = await world.ask('a.wild.test', { version, host: 'nobody.test' })
      assert.deepEqual([status, code], [404, 'ERR_ENDPOINT_OFFLINE'])
    })
  }

  test('an HTTP/2 connection still serves its own edge after a request for another', async () => {
    const listener = { name: 'a.wild.test', port: world.platform.httpsPort, ca: world.platform.ca }
    const session = http2Over(await dialled(listener, { version: '2' }), listener)
    const ask = (host: string): Promise<Answer> => askHttp2(session, listener, { host })
    assert.equal((await ask('b.wild.test')).status, 421)
    assert.equal((await ask('a.wild.test')).text, 'exact')
    assert.equal((await ask('nobody.test')).status, 404)
    assert.equal((await ask('a.wild.test')).text, 'exact')
    session.destroy()
  })

  test('an HTTP/1.1 connection still serves its own edge after a request for an unknown name', async () => {
    const listener = { name: 'a.wild.test', port: world.platform.httpsPort, ca: world.platform.ca }
    const socket = await dialled(listener)
    assert.equal((await askHttp1(socket, listener, { host: 'nobody.test' })).status, 404)
    assert.equal((await askHttp1(socket, listener)).text, 'exact')
    socket.destroy()
  })
})

describe('a ClientHello', () => {
  /** The bytes with which the TLS listener answers, until it closes. */
  async function answerTo(bytes: Buffer | string): Promise<Buffer> {
    const socket = connect({ port: world.platform.httpsPort, host: '127.0.0.1', allowHalfOpen: true })
    socket.on('error', () => {})
    await once(socket, 'connect')
    socket.write(bytes)
    const bytesBack = readToEnd(socket)
    socket.once('end', () => socket.end())
    return bytesBack
  }

  test('without a name gets the alert unrecognized_name', async () => {
    const hello = await clientHello((port) => connectTls({ port, host: '127.0.0.1' }))
    assert.equal((await answerTo(hello)).toString('hex'), '15030100020270')
  })

  test('that is malformed gets an alert or nothing, and the next visitor is served', async () => {
    const alerts = { '16030100050100000101': '15030100020232', '0000': '' }
    for (const [sent, alert] of Object.entries(alerts)) {
      assert.equal((await answerTo(Buffer.from(sent, 'hex'))).toString('hex'), alert)
    }
    assert.equal((await world.ask(MARK)).status, 200)
  })

  test('that is plain HTTP gets an answer that says so', async () => {
    assert.match((await answerTo('GET / HTTP/1.1\r\nHost: a\r\n\r\n')).toString(), /^HTTP\/1\.1 400 [\s\S]*https:\/\//)
  })
})

describe('the plain listener', () => {
  async function askPlain(host: string, { method = 'GET', path = '/' } = {}): Promise<Answer> {
    const socket = connect(world.platform.httpPort, '127.0.0.1')
    await once(socket, 'connect')
    try {
      return await askHttp1(socket, { name: host }, { method, path })
    } finally {
      socket.destroy()
    }
  }

  test('redirects visitors of an HTTPS edge to https, with path and query, whatever the method', async (t) => {
    const upstream = await recorder(t)
    const { name } = await world.httpsTo(upstream, { user_agent_filter: { deny: ['.*'] } })
    for (const method of ['GET', 'POST', 'HEAD']) {
      const { status, headers } = await askPlain(name, { method, path: '/a/b?c=d&e' })
      assert.equal(status, 307)
      assert.equal(headers.location, `https://${name}:${world.platform.httpsPort}/a/b?c=d&e`)
    }
    assert.equal(upstream.seen.length, 0)
  })

  test('redirects visitors of a TLS edge to https, where its service may speak HTTP', async () => {
    const { name } = await world.tlsEdge({ backend: await world.toAddress({ address: '127.0.0.1:1' }) })
    const { status, headers } = await askPlain(name, { path: '/a?b' })
    assert.deepEqual([status, headers.location], [307, `https://${name}:${world.platform.httpsPort}/a?b`])
  })

  test('answers 404 for names that nobody serves', async () => {
    for (const host of ['nobody.test', 'mark.edge.test.evil.test']) {
      const { status, code } = await askPlain(host)
      assert.deepEqual([host, status, code], [host, 404, 'ERR_ENDPOINT_OFFLINE'])
    }
  })

  test('redirects visitors to the public port', async (t) => {
    const public443 = await World.start({ flags: { 'public-https-port': '443' } })
    t.after(() => public443.stop())
    const socket = connect(public443.platform.httpPort, '127.0.0.1')
    const { headers } = await askHttp1(socket, { name: MARK })
    socket.destroy()
    assert.equal(headers.location, `https://${MARK}/`)
  })
})

describe('an invalid HTTP/1.1 request', () => {
  const cases: readonly [what: string, lines: readonly string[], status: number, code: string][] = [
    ['HTTP/1.2', ['GET / HTTP/1.2', 'Host: NAME'], 505, 'ERR_HTTP_VERSION_UNSUPPORTED'],
    [
      'chunks in HTTP/1.0',
      ['POST / HTTP/1.0', 'Host: NAME', 'Transfer-Encoding: chunked'],
      400,
      'ERR_BAD_VISITOR_REQUEST',
    ],
    ['HTTP/2 without negotiation', ['PRI * HTTP/2.0'], 505, 'ERR_HTTP_VERSION_UNSUPPORTED'],
    ['no Host', ['GET / HTTP/1.1'], 400, 'ERR_BAD_VISITOR_REQUEST'],
    ['two Hosts', ['GET / HTTP/1.1', 'Host: NAME', 'Host: NAME'], 400, 'ERR_BAD_VISITOR_REQUEST'],
    ['userinfo', ['GET / HTTP/1.1', 'Host: a@NAME'], 400, 'ERR_BAD_VISITOR_REQUEST'],
    ['a tunnel', ['CONNECT NAME:443 HTTP/1.1', 'Host: NAME:443'], 400, 'ERR_BAD_VISITOR_REQUEST'],
    [
      'a head of 64 KiB',
      ['GET / HTTP/1.1', 'Host: NAME', `X: ${'a'.repeat(65_536)}`],
      431,
      'ERR_REQUEST_HEAD_TOO_LARGE',
    ],
    ['101 headers', ['GET / HTTP/1.1', 'Host: NAME', ...Array(100).fill('X: a')], 431, 'ERR_REQUEST_HEAD_TOO_LARGE'],
    ['a strange expectation', ['GET / HTTP/1.1', 'Host: NAME', 'Expect: tea'], 417, 'ERR_EXPECTATION_FAILED'],
    ['another coding', ['POST / HTTP/1.1', 'Host: NAME', 'Transfer-Encoding: gzip'], 400, 'ERR_BAD_VISITOR_REQUEST'],
    ['nothing at all', ['hello'], 400, 'ERR_BAD_VISITOR_REQUEST'],
  ]
  for (const [what, lines, status, code] of cases) {
    test(`is refused, and the connection closed: ${what}`, async () => {
      const socket = await dialled({ name: MARK, port: world.platform.httpsPort, ca: world.platform.ca })
      socket.write(`${lines.join('\r\n').replaceAll('NAME', MARK)}\r\n\r\n`)
      const text = (await readToEnd(socket)).toString('latin1')
      assert.match(text, new RegExp(`^HTTP/1.1 ${status} [^]*postern-error-code: ${code}\r\n`))
      assert.match(text, /\r\nConnection: close\r\n/i)
    })
  }
})

describe('an error page', () => {
  const forms: readonly [what: string, headers: Record<string, string>, type: string, body: RegExp | ''][] = [
    ['a browser', { accept: 'text/html,*/*' }, 'text/html; charset=utf-8', /^<!doctype html>[\s\S]*ERR_NO_ROUTE/i],
    [
      'a program that reads JSON',
      { accept: 'application/json' },
      'application/json',
      /^\{"error_code":"ERR_NO_ROUTE",/,
    ],
    ['anybody else', {}, 'text/plain; charset=utf-8', /^No route .*\nERR_NO_ROUTE\nrequest [0-9a-f]{32}\n$/],
    ['gRPC', { 'content-type': 'application/grpc+proto', accept: 'text/html' }, 'application/grpc', ''],
  ]
  for (const version of versions) {
    for (const [what, headers, type, body] of forms) {
      test(`is in the form that ${what} can read, over HTTP/${version}`, async () => {
        const { name } = await page()
        const answer = await world.ask(name, { version, headers })
        assert.deepEqual([answer.status, answer.code], [404, 'ERR_NO_ROUTE'])
        assert.equal(answer.headers['content-type'], type)
        assert.equal(answer.headers['cache-control'], 'no-store')
        if (body === '') {
          assert.deepEqual([answer.headers['grpc-status'], answer.body.length], ['14', 0])
          assert.match(String(answer.headers['grpc-message']), /ERR_NO_ROUTE/)
        } else assert.match(answer.text, body)
        const head = await world.ask(name, { version, headers, method: 'HEAD' })
        assert.deepEqual([head.status, head.body.length, head.code], [404, 0, 'ERR_NO_ROUTE'])
      })
    }

    test(`has a code that no upstream can forge, over HTTP/${version}`, async (t) => {
      const upstream = await recorder(t, (_, response) => {
        response.writeEarlyHints({ link: '</a>; rel=preload', 'postern-error-code': 'ERR_FORGED' })
        response.writeHead(404, [
          ['Postern-Error-Code', 'ERR_FORGED'],
          ['POSTERN-ERROR-CODE', 'ERR_FORGED'],
          ['Postern_Error_Code', 'ERR_FORGED'],
          ['Postern.Error.Code', 'ERR_FORGED'],
          ['Postern-Auth-User-Id', 'usr'],
          ['Connection', 'X-Hidden'],
          ['X-Hidden', 'hop'],
          ['X-Shown', 'end'],
          ['Trailer', 'postern-error-code'],
        ])
        response.write('not here')
        response.addTrailers({ 'postern-error-code': 'ERR_FORGED', 'x-sum': '1' })
        response.end()
      })
      const { name } = await world.httpsTo(upstream)
      const answer = await world.ask(name, { version })
      assert.deepEqual([answer.status, answer.text, answer.code], [404, 'not here', undefined])
      const names = [...Object.keys(answer.headers), ...Object.keys(answer.trailers)]
      assert.deepEqual(
        names.filter((each) => /postern|hidden/i.test(each)),
        [],
      )
      assert.deepEqual([answer.headers['x-shown'], answer.trailers['x-sum']], ['end', '1'])
      for (const { headers } of answer.interim) assert.equal('postern-error-code' in headers, false)
    })
  }

  /** An edge without an error page of its own. */
  async function page(): Promise<HttpsEdge> {
    made ??= await world.httpsEdge({ routes: [{ match: '/nothing', response_headers: { add: { 'x-all': '1' } } }] })
    return made
  }
  let made: HttpsEdge | undefined
})

test('a name can move from one edge to another', async () => {
  const name = world.name()
  const first = await world.httpsEdge({ names: [name], routes: [{ backend: await says('first') }] })
  const second = await world.httpsEdge({ names: [], routes: [{ backend: await says('second') }] })
  assert.equal((await world.ask(name)).text, 'first')
  await world.api.update(first.path, { hostports: [] })
  await world.api.update(second.path, { hostports: [`${name}:443`] })
  await world.inForce()
  assert.equal((await world.ask(name)).text, 'second')
  await world.api.delete(second.path)
  await world.inForce()
  assert.equal((await world.ask(name, { tls: { rejectUnauthorized: false } })).code, 'ERR_ENDPOINT_OFFLINE')
})
