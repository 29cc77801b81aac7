/** Visitors over HTTP/1.1 that end their side: the request is cancelled at once, unless its answer has begun. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { describe, type TestContext, test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { until } from '../../../../test/support/until.ts'
import { caPem, edgeOf, Plane, plainEdgeOf, rawService } from '../testing/test-http-plane.ts'

const get = 'GET / HTTP/1.1\r\nHost: a.test\r\n\r\n'
const post = 'POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\n\r\nabc'

/** Shorter than the timeout for a visitor that is merely silent, in milliseconds. */
const SOON_MS = 10_000

/** A visitor that can end only its own side; `heard` is what it received, and `isOver` whether that is all. */
async function visitorOf(t: TestContext, plane: Plane, { isTls }: { isTls: boolean }) {
  const to = { host: '127.0.0.1', allowHalfOpen: true }
  const socket: Socket = isTls
    ? connectTls({
        ...to,
        port: plane.httpsPort,
        servername: 'a.test',
        ca: caPem,
        checkServerIdentity: () => undefined,
      })
    : connect({ ...to, port: plane.httpPort })
  t.after(() => socket.destroy())
  const visitor = { socket, heard: '', isOver: false }
  socket.on('error', () => {})
  socket.on('data', (chunk: Buffer) => {
    visitor.heard += chunk.toString('latin1')
  })
  socket.on('end', () => {
    visitor.isOver = true
  })
  await once(socket, isTls ? 'secureConnect' : 'connect')
  return visitor
}

for (const isTls of [false, true]) {
  describe(`${isTls ? 'with' : 'without'} TLS, a visitor that ends its side`, () => {
    const start = async (t: TestContext, serve: (socket: Socket) => void) => {
      const service = await rawService(t, serve)
      const plane = await Plane.start(t, [edgeOf(service), plainEdgeOf(service)])
      return { service, plane, visitor: await visitorOf(t, plane, { isTls }) }
    }

    for (const [name, request] of Object.entries({ 'a GET': get, 'an upload that is whole': post })) {
      test(`while it waits for the answer to ${name} counts as gone, and its request is cancelled`, async (t) => {
        const { service, plane, visitor } = await start(t, () => {})
        visitor.socket.write(request)
        await until('the service is asked', () => service.sockets.size === 1)
        visitor.socket.end()
        await until('the request is cancelled', () => service.sockets.size === 0, { limitMs: SOON_MS })
        const { status, isCut } = await plane.record()
        assert.deepEqual([status, isCut], [0, true])
        await until('the connection is over', () => plane.connections.size === 0)
        assert.equal(visitor.heard, '')
      })
    }

    test('after several requests gets the earlier answers, and the last request is cancelled', async (t) => {
      let asked = 0
      const { service, plane, visitor } = await start(t, (socket) =>
        socket.on('data', () => {
          if (++asked === 1) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst')
        }),
      )
      visitor.socket.end(get + get)
      await until('the second is asked for', () => asked === 2)
      await until('the second is cancelled', () => service.sockets.size === 0, { limitMs: SOON_MS })
      await until('the visitor has all that is to come', () => visitor.isOver)
      assert.match(visitor.heard, /^HTTP\/1\.1 200 .*first$/s)
      assert.deepEqual(
        (await plane.recorded(2)).map(({ status, isCut }) => [status, isCut]),
        [
          [200, false],
          [0, true],
        ],
      )
    })

    test('after its answer has begun gets the rest of it', async (t) => {
      const { service, visitor } = await start(t, (socket) =>
        socket.once('data', () => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf')),
      )
      visitor.socket.write(get)
      await until('the answer has begun', () => visitor.heard.endsWith('half'))
      visitor.socket.end()
      for (const socket of service.sockets) socket.write('full')
      await until('the visitor has all that is to come', () => visitor.isOver)
      assert.match(visitor.heard, /halffull$/)
    })
  })
}
