import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import { constants } from 'node:http2'
import type { Socket } from 'node:net'
import { type Duplex, Transform } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { describe, test } from 'node:test'
import { createGzip, gunzipSync, constants as zlib } from 'node:zlib'
import { socketStream } from '../../lib/socket-stream.ts'
import type { Phases } from '../../modules/phases.ts'
import { http2Service, httpService, Plane, rawService, type Service, testEdge } from '../test-plane.ts'
import { ask, askOver, beginHttp1, openHttp2, versions } from '../test-visitor.ts'

function edgeOf(service: Service, phases: { response?: NonNullable<Phases['response']>[] } = {}) {
  return testEdge({ names: ['a.test'], routes: [{ backend: service.backend, ...phases }] })
}

/** The same over the plain listener, whose connections a test can break. */
function plainEdgeOf(service: Service, phases: { response?: NonNullable<Phases['response']>[] } = {}) {
  return testEdge({ names: ['a.test'], kind: 'http', routes: [{ backend: service.backend, ...phases }] })
}

for (const version of versions) {
  describe(`over HTTP/${version}`, () => {
    test('eight megabytes go up and down, to either kind of service', async (t) => {
      const bytes = randomBytes(8_000_000)
      const services = [
        await httpService(t, (request, response) => request.pipe(response)),
        await http2Service(t, (stream) => {
          stream.respond({ ':status': 200 })
          stream.pipe(stream)
        }),
      ]
      for (const service of services) {
        const plane = await Plane.start(t, [edgeOf(service)])
        const { status, body } = await ask(t, plane, version, { method: 'POST', body: bytes })
        assert.equal(status, 200)
        assert.equal(digest(body), digest(bytes))
      }
    })

    test('trailers come through, and a gRPC call has its status', async (t) => {
      const service = await http2Service(t, (stream, headers) => {
        stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
        stream.on('wantTrailers', () =>
          stream.sendTrailers({
            'grpc-status': '0',
            'grpc-message': String(headers.te),
            'postern-error-code': 'forged',
          }),
        )
        stream.end('message')
      })
      const plane = await Plane.start(t, [edgeOf(service)])
      const headers = { 'content-type': 'application/grpc', te: 'trailers' }
      const answer = await ask(t, plane, version, { method: 'POST', headers, body: 'x' })
      assert.equal(answer.text, 'message')
      assert.deepEqual(answer.trailers, { 'grpc-status': '0', 'grpc-message': 'trailers' })
    })

    test('a gRPC answer of trailers alone stays one', async (t) => {
      const service = await http2Service(t, (stream) =>
        stream.respond({ ':status': 200, 'content-type': 'application/grpc', 'grpc-status': '5' }, { endStream: true }),
      )
      const plane = await Plane.start(t, [edgeOf(service)])
      const answer = await ask(t, plane, version, { headers: { 'content-type': 'application/grpc' } })
      assert.deepEqual([answer.status, answer.text, answer.headers['grpc-status']], [200, '', '5'])
    })

    test('trailers of a service that speaks HTTP/1.1 come through', async (t) => {
      const service = await httpService(t, (_request, response) => {
        response.writeHead(200, { trailer: 'x-sum' })
        response.write('a')
        response.addTrailers({ 'x-sum': '1' })
        response.end()
      })
      const plane = await Plane.start(t, [edgeOf(service)])
      assert.deepEqual((await ask(t, plane, version)).trailers, { 'x-sum': '1' })
    })

    test('early hints come before the answer', async (t) => {
      const services = [
        await httpService(t, (_request, response) => {
          response.writeEarlyHints({ link: '</a.css>; rel=preload' }, () => response.end('hi'))
        }),
        await http2Service(t, (stream) => {
          stream.additionalHeaders({ ':status': 103, link: '</a.css>; rel=preload' })
          stream.respond({ ':status': 200 })
          stream.end('hi')
        }),
      ]
      for (const service of services) {
        const plane = await Plane.start(t, [edgeOf(service)])
        const { informed, text } = await ask(t, plane, version)
        assert.deepEqual(
          informed.map(({ status, headers }) => [status, headers.link]),
          [[103, '</a.css>; rel=preload']],
        )
        assert.equal(text, 'hi')
      }
    })

    test('who expects to be asked for the body is asked, once a service is there', async (t) => {
      const service = await httpService(t, (request, response) => request.pipe(response))
      const plane = await Plane.start(t, [
        testEdge({
          names: ['a.test'],
          routes: [
            { backend: service.backend },
            { match: '/no', request: [() => ({ refuse: 'IP_REFUSED' as const })] },
          ],
        }),
      ])
      const headers = { expect: '100-continue' }
      const post = async (path: string): Promise<unknown[]> => {
        const asking =
          version === '1.1'
            ? beginHttp1(plane, { method: 'POST', path, headers })
            : openHttp2(t, plane).request({ ':method': 'POST', ':path': path, ':authority': 'a.test', ...headers })
        if (version === '1.1') (asking as ClientRequest).flushHeaders() // as it was made just above
        const seen: unknown[] = []
        asking.on('continue', () => {
          seen.push(100)
          asking.end('abc')
        })
        const [response] = (await once(asking, 'response')) as [IncomingMessage & Record<string, unknown>]
        seen.push(response.statusCode ?? response[':status'])
        if (seen.length === 2) seen.push((await buffer(version === '1.1' ? response : (asking as Duplex))).toString())
        asking.destroy()
        return seen
      }
      assert.deepEqual(await post('/'), [100, 200, 'abc'])
      assert.deepEqual(await post('/no'), [403])
    })

    test('a HEAD has the length that a GET would have, and no body', async (t) => {
      const services = [
        await httpService(t, (_request, response) => response.writeHead(200, { 'content-length': '1234' }).end()),
        await http2Service(t, (stream) =>
          stream.respond({ ':status': 200, 'content-length': '1234' }, { endStream: true }),
        ),
      ]
      for (const service of services) {
        const plane = await Plane.start(t, [edgeOf(service)])
        for (let i = 0; i < 2; i++) {
          const { status, headers, text } = await ask(t, plane, version, { method: 'HEAD' })
          assert.deepEqual([status, headers['content-length'], text], [200, '1234', ''])
        }
      }
    })

    test('204 and 304 have no body', async (t) => {
      const service = await httpService(t, (request, response) => {
        response.writeHead(Number(request.url?.slice(1)), { etag: '"1"' }).end()
      })
      const plane = await Plane.start(t, [edgeOf(service)])
      for (const status of [204, 304]) {
        const answer = await ask(t, plane, version, { path: `/${status}` })
        assert.deepEqual([answer.status, answer.text, answer.headers.etag], [status, '', '"1"'])
      }
    })

    test('what a service sends is there at once, not when it is done', async (t) => {
      let next: (() => void) | undefined
      const service = await httpService(t, (_request, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.flushHeaders()
        let count = 0
        next = () => response.write(`data: ${count++}\n\n`)
      })
      const plane = await Plane.start(t, [edgeOf(service), plainEdgeOf(service)])
      const { response, data, close } = await open(t, plane, version)
      assert.equal(response['content-type'], 'text/event-stream')
      for (let i = 0; i < 5; i++) {
        const [chunk] = (await Promise.all([once(data, 'data'), next?.()]))[0] as [Buffer]
        assert.equal(chunk.toString(), `data: ${i}\n\n`)
      }
      close()
    })

    test('a visitor that stops reading holds the service back', async (t) => {
      let written = 0
      const whole = 64 * 1024 * 1024
      const chunk = Buffer.alloc(64 * 1024)
      const service = await httpService(t, (_request, response) => {
        const fill = (): void => {
          let hasRoom = true
          for (; hasRoom && written < whole; written += chunk.length) hasRoom = response.write(chunk)
          if (written === whole) response.end()
        }
        response.on('drain', fill)
        fill()
      })
      const plane = await Plane.start(t, [edgeOf(service), plainEdgeOf(service)])
      const { data, close } = await open(t, plane, version)
      data.pause()
      assert.ok((await settled(() => written)) < whole / 2, `${written} bytes went nowhere`)
      let read = 0
      data.on('data', (bytes: Buffer) => {
        read += bytes.length
      })
      data.resume()
      await once(data, 'end')
      assert.equal(read, whole)
      close()
    })

    test('a service that stops reading holds the visitor back', async (t) => {
      const service = await rawService(t, (socket) => socket.pause())
      const plane = await Plane.start(t, [edgeOf(service)])
      const chunk = Buffer.alloc(64 * 1024)
      let written = 0
      const posting =
        version === '1.1'
          ? beginHttp1(plane, { method: 'POST' })
          : openHttp2(t, plane).request({ ':method': 'POST', ':authority': 'a.test' })
      posting.on('error', () => {})
      const fill = (): void => {
        let hasRoom = true
        for (; hasRoom && written < 256 * 1024 * 1024; written += chunk.length) hasRoom = posting.write(chunk)
      }
      posting.on('drain', fill)
      fill()
      assert.ok((await settled(() => written)) < 64 * 1024 * 1024, `${written} bytes went nowhere`)
      posting.destroy()
    })

    test('a visitor who leaves takes the request to the service along', async (t) => {
      const gone = Promise.withResolvers<void>()
      const arrived = Promise.withResolvers<void>()
      const service = await httpService(t, (request, response) => {
        if (request.url === '/body') response.write('some')
        response.on('close', () => gone.resolve())
        arrived.resolve()
      })
      const plane = await Plane.start(t, [edgeOf(service), plainEdgeOf(service)])
      if (version === '1.1') {
        const asking = beginPlain(plane, 'GET')
        asking.end()
        await arrived.promise
        cut(asking)
      } else {
        const stream = openHttp2(t, plane).request({ ':authority': 'a.test' })
        stream.on('error', () => {})
        await arrived.promise
        stream.close(constants.NGHTTP2_CANCEL)
      }
      await gone.promise
      const { isCut, status } = await plane.record()
      assert.deepEqual([isCut, status], [true, 0])
    })

    test('a visitor who leaves in the middle of the answer, or of the request, does so too', async (t) => {
      let closes = 0
      const closed = Promise.withResolvers<void>()
      const service = await httpService(t, (request, response) => {
        request.on('error', () => {}).resume()
        response.write('some')
        response.on('close', () => {
          if (++closes === 2) closed.resolve()
        })
      })
      const plane = await Plane.start(t, [edgeOf(service), plainEdgeOf(service)])
      const { close } = await open(t, plane, version)
      close()
      const posting = await open(t, plane, version, { method: 'POST', isLeftOpen: true })
      posting.close()
      await closed.promise
      const records = await plane.recorded(2)
      assert.deepEqual(
        records.map(({ isCut, status }) => [isCut, status]),
        [
          [true, 200],
          [true, 200],
        ],
      )
    })

    test('an answer before the body is whole is an answer, and the connection to the service is not used again', async (t) => {
      const service = await httpService(t, (request, response) => {
        if (request.method === 'GET') response.end('ok')
        else response.writeHead(413).end('too much')
      })
      const plane = await Plane.start(t, [edgeOf(service), plainEdgeOf(service)])
      const { response, data, close } = await open(t, plane, version, { method: 'POST', isLeftOpen: true })
      assert.equal(response.status, 413)
      assert.equal((await buffer(data)).toString(), 'too much')
      await plane.record()
      close()
      assert.equal((await ask(t, plane, version)).text, 'ok')
      assert.equal(service.dials, 2)
    })

    const hopeless: Record<string, [serve: (socket: Socket) => void, status: number, code: string]> = {
      'closes at once': [(socket) => socket.end(), 502, 'UPSTREAM_UNREACHABLE'],
      'resets at once': [(socket) => socket.resetAndDestroy(), 502, 'UPSTREAM_UNREACHABLE'],
      'speaks something else': [(socket) => socket.end('SSH-2.0-OpenSSH_9.6\r\n'), 502, 'UPSTREAM_INVALID'],
      'closes within its head': [(socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Le'), 502, 'UPSTREAM_UNREACHABLE'],
      'has a head without end': [
        (socket) => socket.write(`HTTP/1.1 200 OK\r\nX: ${'x'.repeat(100_000)}`),
        502,
        'UPSTREAM_INVALID',
      ],
      'contradicts itself': [
        (socket) => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab'),
        502,
        'UPSTREAM_INVALID',
      ],
      'switches to what nobody asked for': [
        (socket) => socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n'),
        502,
        'UPSTREAM_INVALID',
      ],
    }
    for (const [name, [serve, status, code]] of Object.entries(hopeless)) {
      test(`a service that ${name} is a fault of the service`, async (t) => {
        const service = await rawService(t, (socket) => {
          socket.on('error', () => {}).once('data', () => serve(socket))
        })
        const plane = await Plane.start(t, [edgeOf(service)])
        const answer = await ask(t, plane, version)
        assert.deepEqual([answer.status, answer.headers['postern-error-code']], [status, `ERR_${code}`])
      })
    }

    test('a service that ends in the middle of its body is seen to', async (t) => {
      const halves = {
        '/length': 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf',
        '/chunks': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n',
        '/garbage': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nzzz\r\n',
      }
      const service = await rawService(t, (socket) => {
        socket
          .on('error', () => {})
          .once('data', (head: Buffer) => {
            const [, path = ''] = head.toString().split(' ')
            socket.end(halves[path as keyof typeof halves]) // one of those just above
          })
      })
      const plane = await Plane.start(t, [edgeOf(service)])
      for (const path of Object.keys(halves)) await assert.rejects(ask(t, plane, version, { path }), path)
      for (const { isCut, status } of await plane.recorded(3)) assert.deepEqual([isCut, status], [true, 200])
    })

    test('encoders of response phases encode, one after the other, as the body comes', async (t) => {
      let next: ((text: string | undefined) => void) | undefined
      const service = await httpService(t, (request, response) => {
        if (request.url === '/fixed') {
          response.end('fixed')
          return
        }
        response.writeHead(200, { trailer: 'x-sum' })
        next = (text) => {
          if (text === undefined) response.addTrailers({ 'x-sum': '1' })
          if (text === undefined) response.end()
          else response.write(text)
        }
        next('first ')
      })
      const shout = new Transform({
        transform: (chunk: Buffer, _encoding, done) => done(null, chunk.toString().toUpperCase()),
      })
      const encode: Phases['response'] = (incoming) => {
        if (!incoming.hasBody) return
        incoming.encodeBody(shout.writable ? shout : new Transform({ transform: (c, _e, d) => d(null, c) }))
        incoming.encodeBody(createGzip({ flush: zlib.Z_SYNC_FLUSH }))
        incoming.headers.set('content-encoding', 'gzip')
      }
      const plane = await Plane.start(t, [
        edgeOf(service, { response: [encode] }),
        plainEdgeOf(service, { response: [encode] }),
      ])
      const { response, data } = await open(t, plane, version)
      assert.equal(response['content-encoding'], 'gzip')
      const [first] = (await once(data, 'data')) as [Buffer]
      assert.equal(gunzipSync(first, { finishFlush: zlib.Z_SYNC_FLUSH }).toString(), 'FIRST ')
      next?.('second')
      next?.(undefined)
      const rest = await buffer(data)
      assert.equal(gunzipSync(Buffer.concat([first, rest])).toString(), 'FIRST SECOND')
      const fixed = await ask(t, plane, version, { path: '/fixed' })
      assert.equal(gunzipSync(fixed.body).toString(), 'fixed')
      assert.equal(fixed.headers['content-length'], undefined)
      const head = await ask(t, plane, version, { path: '/fixed', method: 'HEAD' })
      assert.equal(head.headers['content-encoding'], undefined)
    })

    test('an encoder that fails cuts the answer, and is no trouble to others', async (t) => {
      const service = await httpService(t, (_request, response) => response.end('hi'))
      const fail: Phases['response'] = (incoming, ctx) => {
        if (ctx.path === '/bad')
          incoming.encodeBody(new Transform({ transform: (_chunk, _encoding, done) => done(new Error('no')) }))
      }
      const plane = await Plane.start(t, [edgeOf(service, { response: [fail] })])
      await assert.rejects(ask(t, plane, version, { path: '/bad' }))
      assert.equal((await ask(t, plane, version)).text, 'hi')
    })

    test('nothing moving for too long ends it: with a page before the answer, with a cut within it', async (t) => {
      const service = await httpService(t, (request, response) => {
        if (request.url === '/half') response.write('half')
      })
      const plane = await Plane.start(t, [edgeOf(service)], { idleMs: 60 })
      const none = await ask(t, plane, version)
      assert.deepEqual([none.status, none.headers['postern-error-code']], [504, 'ERR_UPSTREAM_TIMEOUT'])
      await assert.rejects(ask(t, plane, version, { path: '/half' }))
      await Promise.all([...service.sockets].map((socket) => once(socket, 'close')))
    })
  })
}

describe('of a request with a body of unknown length', () => {
  test('trailers reach either kind of service, without those that could pass for headers', async (t) => {
    const seen: unknown[] = []
    const services = [
      await httpService(t, (request, response) => {
        request.resume().on('end', () => {
          seen.push(plain(request.trailers))
          response.end()
        })
      }),
      await http2Service(t, (stream) => {
        stream.on('trailers', (trailers) => seen.push(plain(trailers)))
        stream.resume().on('end', () => {
          stream.respond({ ':status': 200 })
          stream.end()
        })
      }),
    ]
    for (const service of services) {
      const plain = testEdge({ names: ['a.test'], kind: 'http', routes: [{ backend: service.backend }] })
      const plane = await Plane.start(t, [plain, edgeOf(service)])
      const to = { port: plane.httpPort, host: '127.0.0.1', agent: false, method: 'POST', headers: { host: 'a.test' } }
      const posting = request({ ...to, headers: { ...to.headers, trailer: 'x-sum' } })
      posting.write('abc')
      posting.addTrailers({ 'x-sum': '1', 'x-forwarded-for': '9.9.9.9', 'Postern-Auth-User-Id': 'forged' })
      posting.end()
      const [response] = (await once(posting, 'response')) as [IncomingMessage]
      await buffer(response)
      const stream = openHttp2(t, plane).request(
        { ':method': 'POST', ':authority': 'a.test' },
        { waitForTrailers: true },
      )
      stream.on('wantTrailers', () => stream.sendTrailers({ 'x-sum': '2', 'postern-auth-user-id': 'forged' }))
      stream.end('abc')
      await once(stream, 'response')
    }
    assert.deepEqual(seen, [{ 'x-sum': '1' }, { 'x-sum': '2' }, { 'x-sum': '1' }, { 'x-sum': '2' }])
  })
})

describe('many at once', () => {
  test('a thousand requests over one HTTP/2 connection all come back', async (t) => {
    const service = await httpService(t, (request, response) => response.end(request.url))
    const plane = await Plane.start(t, [edgeOf(service)])
    const session = openHttp2(t, plane)
    const paths = Array.from({ length: 1000 }, (_, i) => `/${i}`)
    const answers = await Promise.all(paths.map((path) => askOver(session, { path })))
    assert.deepEqual(
      answers.map(({ text }) => text),
      paths,
    )
  })
})

/** A request whose answer is read by the test. */
async function open(
  t: Parameters<typeof openHttp2>[0],
  plane: Plane,
  version: string,
  { method = 'GET', isLeftOpen = false } = {},
) {
  if (version === '1.1') {
    const asking = beginPlain(plane, method)
    if (isLeftOpen) asking.write('some')
    else asking.end()
    const [response] = (await once(asking, 'response')) as [IncomingMessage]
    response.on('error', () => {})
    const headers: Record<string, unknown> = { ...response.headers, status: response.statusCode }
    return { response: headers, data: response, close: () => cut(asking) }
  }
  const session = openHttp2(t, plane)
  const stream = session.request({ ':method': method, ':authority': 'a.test' }, { endStream: !isLeftOpen })
  stream.on('error', () => {})
  if (isLeftOpen) stream.write('some')
  const [given] = (await once(stream, 'response')) as [Record<string, unknown>]
  const headers: Record<string, unknown> = { ...given, status: given[':status'] }
  return { response: headers, data: stream, close: () => session.destroy() }
}

function beginPlain(plane: Plane, method: string): ClientRequest {
  const to = { port: plane.httpPort, host: '127.0.0.1', agent: false as const, headers: { host: 'a.test' } }
  return request({ ...to, method }).on('error', () => {})
}

/** Closes both ways: one that only sends no more may still wait for its answer. */
function cut({ socket }: ClientRequest): void {
  if (socket) socketStream(socket).reset()
}

/** The value when it stays as it is. */
async function settled(value: () => number): Promise<number> {
  let before = -1
  while (before !== value()) {
    before = value()
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  return before
}

/** Without the symbol that Node adds. */
function plain(object: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(object))
}

function digest(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}
