import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { describe, type TestContext, test } from 'node:test'
import type { ByteStream } from '../../lib/bytes/byte-stream.ts'
import { Sweep } from './deadlines.ts'
import { Http2Upstream } from './http2/http2-upstream.ts'
import { ask, askOver, openHttp2 } from './testing/http-visitor.ts'
import {
  backendOf,
  edgeOf,
  http2Service,
  httpService,
  Plane,
  rawService,
  type Service,
  testEdge,
} from './testing/test-http-plane.ts'

/** Answers the first request of each connection, and leaves the second to `then`. */
function onceService(t: TestContext, then: (socket: Socket) => void): Promise<Service & { bodies?: string[] }> {
  return rawService(t, (socket) => {
    let requests = 0
    socket
      .on('error', () => {})
      .on('data', () => {
        if (++requests === 1) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
        else then(socket)
      })
  })
}

describe('a connection to a service', () => {
  test('is reused for the next visitor', async (t) => {
    const service = await httpService(t, (_request, response) => response.end('hi'))
    const plane = await Plane.start(t, [edgeOf(service)])
    for (let i = 0; i < 5; i++) assert.equal((await ask(t, plane, i % 2 ? '2' : '1.1')).text, 'hi')
    assert.equal(service.dials, 1)
    assert.equal(plane.pool.size, 1)
    assert.deepEqual(
      (await plane.recorded(5)).map(({ isReused }) => isReused),
      [false, true, true, true, true],
    )
  })

  test('is not used for visitors that another version of the address admitted', async (t) => {
    const service = await httpService(t, (_request, response) => response.end('hi'))
    const plane = await Plane.start(t, [])
    const serve = (version: string | undefined) => {
      const reuseKey = version && `${service.target.key} @${version}`
      const backend = backendOf({ ...service.target, reuseKey })
      plane.edges.set('a.test', testEdge({ names: ['a.test'], routes: [{ backend }] }))
    }
    for (const version of ['one', 'one', 'two', undefined, 'one', 'two']) {
      serve(version)
      assert.equal((await ask(t, plane, '1.1')).text, 'hi')
    }
    assert.equal(service.dials, 3)
    plane.pool.retireAll(service.target.key)
    assert.equal(plane.pool.size, 0)
  })

  test('is not kept when the service closes it, or announces that', async (t) => {
    const service = await httpService(t, (_request, response) =>
      response.writeHead(200, { connection: 'close' }).end('hi'),
    )
    const plane = await Plane.start(t, [edgeOf(service)])
    for (let i = 0; i < 3; i++) assert.equal((await ask(t, plane, '1.1')).text, 'hi')
    assert.equal(service.dials, 3)
    assert.equal(plane.pool.size, 0)
  })

  test('that closes while it is free is forgotten', async (t) => {
    const service = await httpService(t, (_request, response) => response.end('hi'))
    const plane = await Plane.start(t, [edgeOf(service)])
    await ask(t, plane, '1.1')
    assert.equal(plane.pool.size, 1)
    for (const socket of service.sockets) socket.end()
    while (plane.pool.size > 0) await new Promise((resolve) => setImmediate(resolve))
    assert.equal((await ask(t, plane, '1.1')).text, 'hi')
    assert.equal(service.dials, 2)
  })

  test('is one of a bounded number: for each service, and in all', async (t) => {
    const waiting: (() => void)[] = []
    const handler: Parameters<typeof httpService>[1] = (_request, response) => {
      waiting.push(() => response.end('hi'))
      if (waiting.length === 6) for (const answer of waiting.splice(0)) answer()
    }
    const [a, b] = [await httpService(t, handler), await httpService(t, handler)]
    const edges = [edgeOf(a), testEdge({ names: ['b.test'], routes: [{ backend: b.backend }] })]
    const plane = await Plane.start(t, edges, { poolOptions: { maxKept: 5, maxKeptPerTarget: 3 } })
    await Promise.all(['a', 'a', 'a', 'a', 'a', 'a'].map((name) => ask(t, plane, '1.1', { host: `${name}.test` })))
    assert.equal(plane.pool.size, 3)
    await Promise.all(['b', 'b', 'b', 'b', 'b', 'b'].map((name) => ask(t, plane, '1.1', { host: `${name}.test` })))
    assert.equal(plane.pool.size, 5)
    // The oldest were closed: two of the first service are left.
    while (a.sockets.size !== 2) await new Promise((resolve) => setImmediate(resolve))
  })

  test('on which a visitor logged in is not shared', async (t) => {
    const service = await httpService(t, (_request, response) => response.end('hi'))
    const plane = await Plane.start(t, [edgeOf(service)])
    for (const authorization of ['NTLM TlRMTVNTUAAB', 'Negotiate YIIB', 'Basic eDp5'])
      assert.equal((await ask(t, plane, '1.1', { headers: { authorization } })).text, 'hi')
    assert.equal((await ask(t, plane, '1.1')).text, 'hi')
    assert.equal(service.dials, 3)
  })

  test('is closed with the pool, and none is kept after', async (t) => {
    const service = await httpService(t, (_request, response) => response.end('hi'))
    const plane = await Plane.start(t, [edgeOf(service)])
    await ask(t, plane, '1.1')
    plane.pool.close()
    assert.equal((await ask(t, plane, '1.1')).text, 'hi')
    while (service.sockets.size > 0) await new Promise((resolve) => setImmediate(resolve))
    assert.equal(plane.pool.size, 0)
  })
})

describe('a kept connection that the service has closed', () => {
  test('does not fail a request that can be sent again', async (t) => {
    for (const then of [(socket: Socket) => socket.end(), (socket: Socket) => socket.resetAndDestroy()]) {
      const service = await onceService(t, then)
      const plane = await Plane.start(t, [edgeOf(service)])
      for (let i = 0; i < 4; i++) assert.equal((await ask(t, plane, '1.1')).text, 'ok')
      assert.equal(service.dials, 4)
    }
  })

  test('has the body sent again, if that is small', async (t) => {
    const bodies: string[] = []
    const service = await rawService(t, (socket) => {
      let requests = 0
      let text = ''
      socket
        .on('error', () => {})
        .on('data', (chunk: Buffer) => {
          text += chunk.toString()
          const [, body = ''] = text.split('\r\n\r\n')
          if (!text.includes('\r\n\r\n') || (text.startsWith('PUT') && body.length < 5)) return
          bodies.push(body)
          text = ''
          if (++requests === 1) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
          else socket.end()
        })
    })
    const plane = await Plane.start(t, [edgeOf(service)])
    await ask(t, plane, '1.1')
    assert.equal((await ask(t, plane, '1.1', { method: 'PUT', body: 'hello' })).text, 'ok')
    assert.deepEqual(bodies, ['', 'hello', 'hello'])
    assert.equal(service.dials, 2)
  })

  test('loses a request that must not be sent twice', async (t) => {
    const service = await onceService(t, (socket) => socket.end())
    const plane = await Plane.start(t, [edgeOf(service)])
    await ask(t, plane, '1.1')
    const lost = await ask(t, plane, '1.1', { method: 'POST', body: 'x' })
    assert.deepEqual([lost.status, lost.headers['postern-error-code']], [502, 'ERR_UPSTREAM_UNREACHABLE'])
    assert.equal(service.dials, 1)
    await ask(t, plane, '1.1')
    const headers = { 'idempotency-key': '1' }
    assert.equal((await ask(t, plane, '1.1', { method: 'POST', body: 'x', headers })).text, 'ok')
  })

  test('is not used for such a request when it was free for long', async (t) => {
    const service = await onceService(t, (socket) => socket.end())
    let now = 0
    const plane = await Plane.start(t, [edgeOf(service)], { poolOptions: { now: () => now } })
    await ask(t, plane, '1.1')
    now += 1001
    assert.equal((await ask(t, plane, '1.1', { method: 'POST', body: 'x' })).text, 'ok')
    assert.equal(service.dials, 2)
  })

  test('is retried only once', async (t) => {
    let connections = 0
    const service = await rawService(t, (socket) => {
      const isFirst = ++connections === 1
      let requests = 0
      socket
        .on('error', () => {})
        .on('data', () => {
          if (isFirst && ++requests === 1) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
          else socket.end()
        })
    })
    const plane = await Plane.start(t, [edgeOf(service)])
    await ask(t, plane, '1.1')
    assert.equal((await ask(t, plane, '1.1')).status, 502)
    assert.equal(service.dials, 2)
  })
})

describe('a service that wants a PROXY header', () => {
  for (const version of [1, 2] as const) {
    test(`of version ${version} gets it before each connection, and one visitor's connection on each`, async (t) => {
      const heads: Buffer[] = []
      const service = await rawService(
        t,
        (socket) => {
          let isFirst = true
          socket
            .on('error', () => {})
            .on('data', (chunk: Buffer) => {
              if (isFirst) heads.push(chunk)
              isFirst = false
              if (chunk.includes('GET ')) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
            })
        },
        { proxyHeader: version },
      )
      const plane = await Plane.start(t, [edgeOf(service)])
      const [first, second] = [openHttp2(t, plane), openHttp2(t, plane)]
      for (const session of [first, first, second, first]) assert.equal((await askOver(session, {})).text, 'ok')
      assert.equal(service.dials, 2)
      const ports = [first, second].map(({ socket }) => socket.localPort)
      if (version === 1) {
        assert.deepEqual(
          heads.map((head) => head.toString().split('\r\n')[0]),
          ports.map((port) => `PROXY TCP4 127.0.0.1 127.0.0.1 ${port} ${plane.httpsPort}`),
        )
      } else {
        assert.deepEqual(
          heads.map((head) => [head.readUInt16BE(12), head.readUInt16BE(24), head.readUInt16BE(26)]),
          ports.map((port) => [0x2111, port, plane.httpsPort]),
        )
      }
    })
  }
})

describe('a service that speaks HTTP/2', () => {
  test('gets all requests over one connection, many at once', async (t) => {
    const waiting: (() => void)[] = []
    const service = await http2Service(t, (stream, headers) => {
      waiting.push(() => {
        stream.respond({ ':status': 200 })
        stream.end(String(headers[':path']))
      })
      if (waiting.length === 50) for (const answer of waiting.splice(0)) answer()
    })
    const plane = await Plane.start(t, [edgeOf(service)])
    const session = openHttp2(t, plane)
    const paths = Array.from({ length: 50 }, (_, i) => `/${i}`)
    for (let round = 0; round < 2; round++) {
      const answers = await Promise.all(paths.map((path) => askOver(session, { path })))
      assert.deepEqual(
        answers.map(({ text }) => text),
        paths,
      )
    }
    assert.equal(service.dials, 1)
  })

  test('that sends GOAWAY is dialled again', async (t) => {
    const service = await http2Service(t, (stream, headers) => {
      stream.respond({ ':status': 200 })
      stream.end('hi')
      if (headers[':path'] === '/last') stream.session?.close()
    })
    const plane = await Plane.start(t, [edgeOf(service)])
    assert.equal((await ask(t, plane, '2')).text, 'hi')
    assert.equal((await ask(t, plane, '2', { path: '/last' })).text, 'hi')
    while (service.sockets.size > 0) await new Promise((resolve) => setImmediate(resolve))
    assert.equal((await ask(t, plane, '2')).text, 'hi')
    assert.equal(service.dials, 2)
  })

  test('that allows few at once gets more connections', async (t) => {
    const waiting: (() => void)[] = []
    const service = await http2Service(
      t,
      (stream, headers) => {
        const answer = (): void => {
          stream.respond({ ':status': 200 })
          stream.end('hi')
        }
        if (headers[':path'] === '/now') answer()
        else waiting.push(answer)
        if (waiting.length === 8) for (const each of waiting.splice(0)) each()
      },
      { settings: { maxConcurrentStreams: 2 } },
    )
    const plane = await Plane.start(t, [edgeOf(service)])
    const session = openHttp2(t, plane)
    assert.equal((await askOver(session, { path: '/now' })).text, 'hi')
    const answers = await Promise.all(Array.from({ length: 8 }, () => askOver(session, {})))
    assert.ok(answers.every(({ text }) => text === 'hi'))
    assert.equal(service.dials, 4)
  })

  test('that refuses a stream gets the request once more', async (t) => {
    let asked = 0
    const service = await http2Service(t, (stream) => {
      if (++asked === 2) stream.close(7)
      else {
        stream.respond({ ':status': 200 })
        stream.end('hi')
      }
    })
    const plane = await Plane.start(t, [edgeOf(service)])
    assert.equal((await ask(t, plane, '2')).text, 'hi')
    assert.equal((await ask(t, plane, '2', { method: 'PUT', body: 'x' })).text, 'hi')
    assert.equal(asked, 3)
  })

  test('that resets a stream, or does not speak HTTP/2, is a fault of the service', async (t) => {
    const resetting = await http2Service(t, (stream) => stream.close(2))
    const other = await rawService(
      t,
      (socket) => {
        socket.on('error', () => {}).end('HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n')
      },
      { httpVersion: 2 },
    )
    const closing = await rawService(t, (socket) => socket.on('error', () => {}).destroy(), { httpVersion: 2 })
    for (const service of [resetting, other, closing]) {
      const plane = await Plane.start(t, [edgeOf(service)])
      assert.equal((await ask(t, plane, '2')).status, 502)
    }
  })

  test('with a head too large gets the request once, whatever the library reports', async (t) => {
    let asked = 0
    const service = await http2Service(t, (stream) => {
      asked++
      const many = Object.fromEntries(Array.from({ length: 400 }, (_, i) => [`x-${i}`, '1']))
      stream.respond({ ':status': 200, ...(asked === 1 ? {} : many) })
      stream.end('hi')
    })
    const plane = await Plane.start(t, [edgeOf(service)])
    assert.equal((await ask(t, plane, '2')).text, 'hi')
    assert.equal((await ask(t, plane, '2', { method: 'POST', body: 'x' })).status, 502)
    assert.equal(asked, 2)
  })

  test('that sends interim responses without end is a fault of the service', async (t) => {
    const service = await http2Service(t, (stream) => {
      for (let i = 0; i < 40; i++) stream.additionalHeaders({ ':status': 103, link: '<a>' })
      stream.respond({ ':status': 200 })
      stream.end('hi')
    })
    const plane = await Plane.start(t, [edgeOf(service)])
    const answer = await ask(t, plane, '2')
    assert.deepEqual([answer.status, answer.headers['postern-error-code']], [502, 'ERR_UPSTREAM_INVALID'])
  })

  test('that breaks off in the middle of the body cuts the answer', async (t) => {
    const service = await http2Service(t, (stream) => {
      stream.respond({ ':status': 200 })
      // The library ends a stream that it resets, so half would look complete.
      stream.write('half', () => stream.session?.destroy())
    })
    const plane = await Plane.start(t, [edgeOf(service)])
    for (const version of ['1.1', '2'] as const) await assert.rejects(ask(t, plane, version))
  })

  test('is disconnected when it gets no more requests', async (t) => {
    const service = await http2Service(t, (stream) => {
      stream.respond({ ':status': 200 })
      stream.end('hi')
    })
    const poolOptions = {
      http2: (stream: ByteStream) => new Http2Upstream({ stream, sweep: new Sweep({ everyMs: 5 }), idleMs: 20 }),
    }
    const plane = await Plane.start(t, [edgeOf(service)], { poolOptions })
    assert.equal((await ask(t, plane, '2')).text, 'hi')
    const [socket] = service.sockets
    if (socket) await once(socket, 'close')
    assert.equal((await ask(t, plane, '2')).text, 'hi')
    assert.equal(service.dials, 2)
  })
})
