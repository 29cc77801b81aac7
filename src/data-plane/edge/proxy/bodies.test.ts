import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import { type Duplex, Transform } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { describe, test } from 'node:test'
import { createGzip, gunzipSync, constants as zlib } from 'node:zlib'
import type { Phases } from '../../../modules/phases.ts'
import { ask, askOver, beginHttp1, open, openHttp2, versions } from '../testing/http-visitor.ts'
import {
  edgeOf,
  http2Service,
  httpService,
  Plane,
  plainEdgeOf,
  rawService,
  testEdge,
} from '../testing/test-http-plane.ts'

for (const version of versions) {
  describe(`over HTTP/${version}`, () => {
    test('eight megabytes go both ways, with either kind of service', async (t) => {
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

    test('a gRPC answer that is only trailers stays so', async (t) => {
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

    test('a visitor that expects a 100 gets it once a service is connected', async (t) => {
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
        if (version === '1.1') (asking as ClientRequest).flushHeaders() // created just above
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

    test('what a service sends arrives at once, not when the answer is complete', async (t) => {
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
        const coming = once(data, 'data')
        next?.()
        const [chunk] = (await coming) as [Buffer]
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

    test('an answer before the end of the body is passed on, and its connection is not reused', async (t) => {
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

    test('an answer to an upload that the service does not read is passed on, and nothing is left', async (t) => {
      const service = await rawService(t, (socket) => {
        socket
          .on('error', () => {})
          .once('data', () => {
            socket.pause()
            // Late enough for all buffers in between to be full.
            setTimeout(() => socket.write('HTTP/1.1 413 Too Much\r\nContent-Length: 8\r\n\r\ntoo much'), 100)
          })
      })
      const plane = await Plane.start(t, [edgeOf(service), plainEdgeOf(service)])
      const asking = open(t, plane, version, { method: 'POST', body: Buffer.alloc(20_000_000) })
      const { response, close } = await asking
      assert.equal(response.status, 413)
      const { isCut, status } = await plane.record()
      assert.deepEqual([isCut, status], [false, 413])
      close()
      while (plane.connections.size > 0) await new Promise((resolve) => setImmediate(resolve))
    })

    test('encoders of response phases run one after the other, as the body arrives', async (t) => {
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

    test('an encoder that fails cuts the answer, and does not affect others', async (t) => {
      const service = await httpService(t, (_request, response) => response.end('hi'))
      const fail: Phases['response'] = (incoming, ctx) => {
        if (ctx.path === '/bad')
          incoming.encodeBody(new Transform({ transform: (_chunk, _encoding, done) => done(new Error('no')) }))
      }
      const plane = await Plane.start(t, [edgeOf(service, { response: [fail] })])
      await assert.rejects(ask(t, plane, version, { path: '/bad' }))
      assert.equal((await ask(t, plane, version)).text, 'hi')
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

describe('both ways at once', () => {
  test('a visitor and a service exchange messages over HTTP/2', async (t) => {
    const service = await http2Service(t, (stream) => {
      stream.respond({ ':status': 200 })
      stream.on('data', (chunk: Buffer) => stream.write(chunk.toString().toUpperCase()))
      stream.on('end', () => stream.end('BYE'))
    })
    const plane = await Plane.start(t, [edgeOf(service)])
    const stream = openHttp2(t, plane).request({ ':method': 'POST', ':authority': 'a.test' })
    for (const word of ['hello', 'how', 'are', 'you']) {
      stream.write(word)
      const [heard] = (await once(stream, 'data')) as [Buffer]
      assert.equal(heard.toString(), word.toUpperCase())
    }
    stream.end()
    assert.equal((await buffer(stream)).toString(), 'BYE')
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

/** The value once it no longer changes. */
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
