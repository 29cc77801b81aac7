import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { connect } from 'node:net'
import { describe, test } from 'node:test'
import { visitorErrors } from '../../../model/visitor-errors.ts'
import type { Phases } from '../../../modules/phases.ts'
import { errorPages } from '../pages/error-page.ts'
import { ask, versions } from '../testing/http-visitor.ts'
import { http2Service, httpService, Plane, rawService, testEdge } from '../testing/test-http-plane.ts'

/** What a service saw, as JSON. */
function shown({ method, url, rawHeaders }: IncomingMessage): string {
  return JSON.stringify({ method, url, rawHeaders })
}

/** The values of a header that a service saw, one for each line. */
function seen(text: string, key: string): string[] {
  const { rawHeaders } = JSON.parse(text) as { rawHeaders: string[] }
  return rawHeaders.filter((_, i) => i % 2 === 1 && rawHeaders[i - 1]?.toLowerCase() === key)
}

function names(text: string): string[] {
  const { rawHeaders } = JSON.parse(text) as { rawHeaders: string[] }
  return rawHeaders.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase())
}

for (const version of versions) {
  describe(`over HTTP/${version}, a service sees`, () => {
    test('where the visitor comes from, after the addresses of earlier proxies, and no other word of the visitor', async (t) => {
      const service = await httpService(t, (request, response) => response.end(shown(request)))
      const plane = await Plane.start(t, [testEdge({ names: ['a.test'], routes: [{ backend: service.backend }] })])
      const first = await ask(t, plane, version, { host: 'a.test:8443', serverName: 'a.test' })
      assert.deepEqual(seen(first.text, 'x-forwarded-for'), ['127.0.0.1'])
      assert.deepEqual(seen(first.text, 'x-forwarded-proto'), ['https'])
      assert.deepEqual(seen(first.text, 'x-forwarded-host'), ['a.test:8443'])
      assert.deepEqual(seen(first.text, 'host'), ['a.test:8443'])
      const headers = {
        'x-forwarded-for': '1.1.1.1',
        'x-forwarded-proto': 'http',
        'x-forwarded-host': 'b.test',
        'x-forwarded-port': '1',
        'x-forwarded-server': 'b.test',
        forwarded: 'for=6.6.6.6;host=b.test',
        'x-real-ip': '6.6.6.6',
      }
      const second = await ask(t, plane, version, { headers })
      assert.deepEqual(seen(second.text, 'x-forwarded-for'), ['1.1.1.1, 127.0.0.1'])
      assert.deepEqual(seen(second.text, 'x-forwarded-proto'), ['https'])
      assert.deepEqual(seen(second.text, 'x-forwarded-host'), ['a.test'])
      for (const name of ['x-forwarded-port', 'x-forwarded-server', 'forwarded', 'x-real-ip'])
        assert.deepEqual(seen(second.text, name), [], name)
    })

    test('none of our headers from anyone else, in any spelling', async (t) => {
      const service = await httpService(t, (request, response) => response.end(shown(request)))
      const upstream: Phases['upstream'] = ({ headers }) => headers.add('Postern-Auth-User-Id', 'ours')
      const routes = [{ backend: service.backend, upstream: [upstream] }]
      const plane = await Plane.start(t, [testEdge({ names: ['a.test'], routes })])
      const { text } = await ask(t, plane, version, {
        headers: {
          'Postern-Auth-User-Id': 'forged',
          postern_auth_user_id: 'forged',
          'postern.auth.user.id': 'forged',
          'postern-mtls-subject-cn': 'forged',
          x_forwarded_for: '9.9.9.9',
          'x-mine': 'stays',
        },
      })
      assert.deepEqual(seen(text, 'postern-auth-user-id'), ['ours'])
      assert.doesNotMatch(text, /forged|9\.9\.9\.9/)
      assert.deepEqual(seen(text, 'x-mine'), ['stays'])
    })

    test('the changes of modules: headers removed, then added, and another host', async (t) => {
      const service = await httpService(t, (request, response) => response.end(shown(request)))
      const upstream: Phases['upstream'] = ({ headers }, ctx) => {
        headers.remove('foo')
        headers.add('foo', 'b')
        headers.add('bar', 'b')
        headers.remove('x-forwarded-for')
        ctx.replacedHost = 'x.local'
      }
      const routes = [{ backend: service.backend, upstream: [upstream] }]
      const plane = await Plane.start(t, [testEdge({ names: ['a.test'], routes })])
      const { text } = await ask(t, plane, version, { headers: { foo: 'a', bar: 'a' } })
      assert.deepEqual(seen(text, 'foo'), ['b'])
      assert.deepEqual(seen(text, 'bar'), ['a', 'b'])
      assert.deepEqual(seen(text, 'x-forwarded-for'), [])
      assert.deepEqual(seen(text, 'host'), ['x.local'])
      assert.deepEqual(seen(text, 'x-forwarded-host'), ['a.test'])
    })

    test('cookies in one line', async (t) => {
      const service = await httpService(t, (request, response) => response.end(shown(request)))
      const plane = await Plane.start(t, [testEdge({ names: ['a.test'], routes: [{ backend: service.backend }] })])
      const { text } = await ask(t, plane, version, { headers: { cookie: 'a=1; b=2' } })
      assert.deepEqual(seen(text, 'cookie'), ['a=1; b=2'])
    })

    test('cookies without ours, whatever the service speaks', async (t) => {
      const cookie = 'a=1; __Host-postern-page=x;  b=2'
      const one = await httpService(t, ({ headers }, response) => response.end(headers.cookie))
      const two = await http2Service(t, (stream, headers) => {
        stream.respond({ ':status': 200 })
        stream.end(String(headers.cookie))
      })
      const edges = [one, two].map(({ backend }, i) => testEdge({ names: [`${i}.test`], routes: [{ backend }] }))
      const plane = await Plane.start(t, edges)
      for (const host of ['0.test', '1.test'])
        assert.equal((await ask(t, plane, version, { host, headers: { cookie } })).text, 'a=1;  b=2')
    })

    test('the same over HTTP/2', async (t) => {
      const service = await http2Service(t, (stream, headers) => {
        stream.respond({ ':status': 200 })
        stream.end(JSON.stringify(headers))
      })
      const plane = await Plane.start(t, [testEdge({ names: ['a.test'], routes: [{ backend: service.backend }] })])
      const answer = await ask(t, plane, version, { path: '/a?b', headers: { 'x-mine': 'stays', te: 'trailers' } })
      assert.deepEqual(JSON.parse(answer.text), {
        ':method': 'GET',
        ':scheme': 'http',
        ':authority': 'a.test',
        ':path': '/a?b',
        te: 'trailers',
        'x-mine': 'stays',
        'x-forwarded-for': '127.0.0.1',
        'x-forwarded-proto': 'https',
        'x-forwarded-host': 'a.test',
      })
    })
  })

  describe(`over HTTP/${version}, a visitor sees`, () => {
    for (const ngrokErrorHeader of [true, false]) {
      const pages = () => errorPages({ ngrokErrorHeader })
      test(`no ngrok error number of the service, when ours is ${ngrokErrorHeader ? 'on' : 'off'}`, async (t) => {
        const service = await httpService(t, (_request, response) => {
          response.writeEarlyHints({ link: '</a>; rel=preload', 'ngrok-error-code': 'ERR_NGROK_3200' })
          response.writeHead(200, { 'Ngrok-Error-Code': 'ERR_NGROK_3200', trailer: 'ngrok-error-code' })
          response.write('hi')
          response.addTrailers({ 'ngrok-error-code': 'ERR_NGROK_3200', 'x-sum': '1' })
          response.end()
        })
        const route = { match: '/here', backend: service.backend }
        const plane = await Plane.start(t, [testEdge({ names: ['a.test'], routes: [route] })], { pages })
        const answer = await ask(t, plane, version, { path: '/here' })
        assert.deepEqual([answer.status, answer.informed[0]?.status, answer.trailers], [200, 103, { 'x-sum': '1' }])
        for (const each of [answer, ...answer.informed]) assert.equal('ngrok-error-code' in each.headers, false)
        const { status, headers } = await ask(t, plane, version, { path: '/elsewhere' })
        const number = ngrokErrorHeader ? `ERR_NGROK_${visitorErrors.NO_ROUTE.ngrok}` : undefined
        assert.deepEqual([status, headers['ngrok-error-code']], [404, number])
      })
    }

    test('no headers that belong to the connection of the service, and no forged error code', async (t) => {
      const service = await httpService(t, (_request, response) => {
        response.writeHead(200, {
          connection: 'x-private, keep-alive',
          'x-private': '1',
          'keep-alive': 'timeout=5',
          'postern-error-code': 'ERR_FORGED',
          'Ngrok-Error-Code': 'ERR_NGROK_3200',
          'Postern-Auth-User-Id': 'forged',
          'x-public': '2',
          'set-cookie': ['a=1', 'b=2'],
        })
        response.end('hi')
      })
      const plane = await Plane.start(t, [testEdge({ names: ['a.test'], routes: [{ backend: service.backend }] })])
      const { headers } = await ask(t, plane, version)
      assert.equal(headers['postern-error-code'], undefined)
      assert.equal(headers['ngrok-error-code'], undefined)
      assert.equal(headers['postern-auth-user-id'], undefined)
      assert.equal(headers['x-private'], undefined)
      assert.equal(headers['x-public'], '2')
      assert.deepEqual(headers['set-cookie'], ['a=1', 'b=2'])
    })

    test('a redirect to the rewritten host as one to the public host', async (t) => {
      const service = await httpService(t, (request, response) => {
        const location = request.url === '/away' ? 'http://y.local/p' : 'http://x.local/p?q'
        response.writeHead(302, { location }).end()
      })
      const upstream: Phases['upstream'] = (_outgoing, ctx) => {
        if (ctx.path !== '/kept') ctx.replacedHost = 'x.local'
      }
      const routes = [{ backend: service.backend, upstream: [upstream] }]
      const plane = await Plane.start(t, [testEdge({ names: ['a.test'], routes })])
      const host = 'a.test:8443'
      const locationOf = async (path: string) =>
        (await ask(t, plane, version, { host, serverName: 'a.test', path })).headers.location
      assert.equal(await locationOf('/'), 'https://a.test:8443/p?q')
      assert.equal(await locationOf('/away'), 'http://y.local/p')
      assert.equal(await locationOf('/kept'), 'http://x.local/p?q')
    })

    test('the answer as response phases changed it, in their order, from modules and backends alike', async (t) => {
      const service = await httpService(t, (_request, response) => response.writeHead(201).end('made'))
      const mark =
        (value: string): NonNullable<Phases['response']> =>
        (incoming) => {
          incoming.headers.add('x-mark', `${value} ${incoming.isFromUpstream} ${incoming.hasBody}`)
          if (value === '2') incoming.headers.remove('content-type')
        }
      const response = [mark('1'), mark('2')]
      const answer = { respond: { status: 418, headers: [['content-type', 'a/b']] as const, body: 'tea' } }
      const routes = [
        { match: '/', backend: service.backend, response },
        { match: '/own', request: [() => answer], response },
        { match: '/page', request: [() => ({ refuse: 'IP_REFUSED' as const })], response },
      ]
      const plane = await Plane.start(t, [testEdge({ names: ['a.test'], routes })])
      const served = await ask(t, plane, version)
      assert.deepEqual(
        [served.status, served.text, served.headers['x-mark']],
        [201, 'made', '1 true true, 2 true true'],
      )
      const own = await ask(t, plane, version, { path: '/own' })
      assert.deepEqual([own.status, own.text, own.headers['x-mark']], [418, 'tea', '1 false true, 2 false true'])
      assert.equal(own.headers['content-type'], undefined)
      const head = await ask(t, plane, version, { path: '/own', method: 'HEAD' })
      assert.deepEqual([head.status, head.text, head.headers['content-length']], [418, '', '3'])
      const page = await ask(t, plane, version, { path: '/page' })
      assert.deepEqual([page.status, page.headers['x-mark']], [403, undefined])
      assert.equal(page.headers['content-type'], 'text/plain; charset=utf-8')
    })

    test('headers that belong to a refusal', async (t) => {
      const refuse = { refuse: 'CREDENTIALS_REQUIRED' as const, headers: [['www-authenticate', 'Basic']] as const }
      const plane = await Plane.start(t, [testEdge({ names: ['a.test'], routes: [{ request: [async () => refuse] }] })])
      const answer = await ask(t, plane, version)
      assert.deepEqual([answer.status, answer.headers['www-authenticate']], [401, 'Basic'])
    })

    test('a 500 when a module adds a header that cannot be sent', async (t) => {
      const service = await httpService(t, (_request, response) => response.end('hi'))
      const bad: Phases['response'] = (incoming) => {
        incoming.headers.add('x-bad', 'a\r\nset-cookie: b')
        return undefined
      }
      const badUp: Phases['upstream'] = (outgoing) => outgoing.headers.add('x-bad', 'a\r\nx-evil: b')
      const routes = [
        { match: '/', backend: service.backend, response: [bad] },
        { match: '/up', backend: service.backend, upstream: [badUp] },
      ]
      const plane = await Plane.start(t, [testEdge({ names: ['a.test'], routes })])
      for (const path of ['/', '/up']) {
        const answer = await ask(t, plane, version, { path })
        assert.deepEqual([answer.status, answer.headers['postern-error-code']], [500, 'ERR_BROKEN_MODULE'], path)
      }
      const log = plane.logged.join('')
      assert.equal(log.match(/"message":"a header that cannot be sent: `x-bad`"/g)?.length, 2, log)
      assert.doesNotMatch(log, /set-cookie|x-evil/, 'the log names the header without its value')
    })
  })
}

describe('of HTTP/1.1, a service never sees', () => {
  test('h2c, nor headers that belong to the connection of the visitor', async (t) => {
    const service = await httpService(t, (request, response) => response.end(shown(request)))
    const edge = testEdge({ names: ['a.test'], kind: 'http', routes: [{ backend: service.backend }] })
    const plane = await Plane.start(t, [edge])
    const socket = connect(plane.httpPort, '127.0.0.1')
    socket.write(
      [
        'GET / HTTP/1.1',
        'Host: a.test',
        'Connection: Upgrade, HTTP2-Settings, X-Private, close',
        'Upgrade: h2c',
        'HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA',
        'X-Private: 1',
        'Keep-Alive: timeout=5',
        'Proxy-Authorization: Basic eA==',
        'TE: trailers, gzip',
        'X-Public: 2',
        '\r\n',
      ].join('\r\n'),
    )
    let text = ''
    for await (const chunk of socket) text += String(chunk)
    const [, body = ''] = text.split('\r\n\r\n')
    assert.deepEqual(names(body).sort(), [
      'host',
      'x-forwarded-for',
      'x-forwarded-host',
      'x-forwarded-proto',
      'x-public',
    ])
  })
})

describe('a module that reads the body', () => {
  test('leaves it to the service, whole', async (t) => {
    const service = await httpService(t, (request, response) => request.pipe(response))
    const read: string[] = []
    const readBody: Phases['request'] = async (ctx) => {
      const body = await ctx.readBody(1000)
      read.push(body === 'too_large' ? body : `${body.length}`)
      // A second call gets the same.
      assert.deepEqual(await ctx.readBody(1000), body)
      return undefined
    }
    const routes = [{ backend: service.backend, request: [readBody, readBody] }]
    const plane = await Plane.start(t, [testEdge({ names: ['a.test'], routes })])
    for (const version of versions) {
      const body = 'x'.repeat(900)
      const headers = { expect: '100-continue' }
      assert.equal((await ask(t, plane, version, { method: 'POST', body })).text, body)
      assert.equal((await ask(t, plane, version, { method: 'POST', body, headers })).text, body)
      const large = Buffer.alloc(300_000, 'y')
      assert.deepEqual((await ask(t, plane, version, { method: 'POST', body: large })).body, large)
      assert.equal((await ask(t, plane, version)).text, '')
    }
    const each = ['900', '900', '900', '900', 'too_large', 'too_large', '0', '0']
    assert.deepEqual(read, [...each, ...each])
  })

  test('of unknown length that is too large for it may still let it pass', async (t) => {
    const service = await httpService(t, (request, response) => request.pipe(response))
    const verdicts: unknown[] = []
    const readBody: Phases['request'] = async (ctx) => {
      verdicts.push(await ctx.readBody(10))
      return undefined
    }
    const edge = testEdge({
      names: ['a.test'],
      kind: 'http',
      routes: [{ backend: service.backend, request: [readBody] }],
    })
    const plane = await Plane.start(t, [edge])
    const to = { port: plane.httpPort, host: '127.0.0.1', agent: false, method: 'POST', headers: { host: 'a.test' } }
    const posting = request(to)
    posting.write(Buffer.alloc(100_000, 'a'))
    posting.end(Buffer.alloc(100_000, 'b'))
    const [response] = (await once(posting, 'response')) as [IncomingMessage]
    let length = 0
    for await (const chunk of response) length += (chunk as Buffer).length
    assert.equal(length, 200_000)
    assert.deepEqual(verdicts, ['too_large'])
  })
})

describe('the record of a request', () => {
  test('has its visitor, host, path and outcome, and no query in its path', async (t) => {
    const service = await httpService(t, (request, response) => request.resume().on('end', () => response.end('hello')))
    const done: unknown[] = []
    const request: Phases['request'] = (ctx) => {
      ctx.found.set('ip_policy.decision', 'allow')
      return undefined
    }
    const routes = [
      { backend: service.backend, request: [request], done: [(summary: unknown) => void done.push(summary)] },
    ]
    const plane = await Plane.start(t, [testEdge({ id: 'edghts_1', names: ['a.test'], routes })], { now: () => 1000 })
    await ask(t, plane, '2', { method: 'POST', path: '/a/../b?token=secret', body: 'abc' })
    const { peer, request: { requestId } = {}, ...record } = await plane.record()
    assert.equal(peer.ip, '127.0.0.1')
    assert.match(requestId ?? '', /^[0-9a-f]{32}$/)
    assert.deepEqual(record, {
      startedAt: 1000,
      durationMs: 0,
      scheme: 'https',
      version: '2',
      method: 'POST',
      host: 'a.test',
      path: '/a/../b',
      sentTarget: '/a/../b?token=secret',
      edge: 'edghts_1',
      ownerId: undefined,
      passedMs: 0,
      sentMs: 0,
      answeredMs: 0,
      kept: undefined,
      replay: undefined,
      route: '/',
      target: service.target.key,
      isReused: false,
      status: 200,
      isFromUpstream: true,
      fault: undefined,
      isCut: false,
      bytesIn: 3,
      bytesOut: 5,
      found: new Map([['ip_policy.decision', 'allow']]),
    })
    assert.deepEqual(done, [{ status: 200, isFromUpstream: true, fault: undefined }])
  })

  test('distinguishes refusals from faults of the service', async (t) => {
    const closer = await rawService(t, (socket) => socket.on('error', () => {}).destroy())
    const summaries: unknown[] = []
    const done = [(summary: unknown) => void summaries.push(summary)]
    const routes = [
      { match: '/closed', backend: closer.backend, done },
      { match: '/refused', request: [() => ({ refuse: 'IP_REFUSED' as const })], done },
    ]
    const plane = await Plane.start(t, [testEdge({ names: ['a.test'], routes })])
    await ask(t, plane, '1.1', { path: '/closed' })
    await ask(t, plane, '1.1', { path: '/refused' })
    await ask(t, plane, '1.1', { path: '/nothing' })
    const records = await plane.recorded(3)
    assert.deepEqual(
      records.map(({ status, fault, route }) => [status, fault, route]),
      [
        [502, 'UPSTREAM_UNREACHABLE', '/closed'],
        [403, 'IP_REFUSED', '/refused'],
        [404, 'NO_ROUTE', undefined],
      ],
    )
    assert.deepEqual(summaries, [
      { status: 502, isFromUpstream: false, fault: 'UPSTREAM_UNREACHABLE' },
      { status: 403, isFromUpstream: false, fault: undefined },
    ])
  })
})
