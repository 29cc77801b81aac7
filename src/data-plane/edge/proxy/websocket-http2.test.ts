import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { type ClientHttp2Session, type ClientHttp2Stream, constants, type OutgoingHttpHeaders } from 'node:http2'
import type { Socket } from 'node:net'
import { describe, type TestContext, test } from 'node:test'
import type { Phases } from '../../../modules/phases.ts'
import { clientFrame } from '../../../modules/websocket_tcp_converter/testing/test-client.ts'
import { compileWebsocketTcpConverter } from '../../../modules/websocket_tcp_converter/traffic.ts'
import { ask, askOver, openHttp2 } from '../testing/http-visitor.ts'
import { edgeOf, httpService, Plane, rawService, type Service, testEdge } from '../testing/test-http-plane.ts'

const acceptOf = (key: string): string =>
  createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')

const usual = ({ key }: { key: string }): string =>
  `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${acceptOf(key)}\r\nX-Public: 1\r\n\r\n`

interface WebSocketService extends Service {
  /** What reached it: the head, and all bytes after it. */
  readonly seen: { head: string; bytes: Buffer }
  /** Its end of the one connection, when it has its head. */
  readonly joined: Promise<Socket>
}

/** A service that answers a handshake with `answer` and sends back what follows, unless `onJoined` does something else. */
async function webSocketService(
  t: TestContext,
  {
    answer = usual,
    onJoined = (socket: Socket) => socket.on('end', () => socket.end()),
  }: { answer?: typeof usual; onJoined?: (socket: Socket) => void } = {},
): Promise<WebSocketService> {
  const seen = { head: '', bytes: Buffer.alloc(0) }
  const joined = Promise.withResolvers<Socket>()
  const service = await rawService(t, (socket) => {
    socket.on('error', () => {})
    socket.on('data', (chunk: Buffer) => {
      if (seen.head !== '') {
        seen.bytes = Buffer.concat([seen.bytes, chunk])
        if (!socket.writableEnded) socket.write(chunk)
        return
      }
      seen.head = chunk.toString('latin1')
      const key = /sec-websocket-key: (.*)\r\n/i.exec(seen.head)?.[1] ?? ''
      socket.write(answer({ key }))
      onJoined(socket)
      joined.resolve(socket)
    })
  })
  return Object.assign(service, { seen, joined: joined.promise })
}

async function session(t: TestContext, plane: Plane): Promise<ClientHttp2Session> {
  const opened = openHttp2(t, plane)
  await once(opened, 'remoteSettings')
  return opened
}

function dial(over: ClientHttp2Session, headers: OutgoingHttpHeaders = {}): ClientHttp2Stream {
  const stream = over.request({
    ':method': 'CONNECT',
    ':protocol': 'websocket',
    ':scheme': 'https',
    ':path': '/ws?a=b',
    ':authority': 'a.test',
    'sec-websocket-version': '13',
    ...headers,
  })
  stream.on('error', () => {})
  return stream
}

async function answered(stream: ClientHttp2Stream): Promise<Record<string, unknown>> {
  const [head] = (await once(stream, 'response')) as [Record<string, unknown>]
  return head
}

/** The next bytes of a stream, exactly as many. */
async function take(stream: ClientHttp2Stream, count: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  for (let left = count; left > 0; ) {
    const chunk = stream.read() as Buffer | null
    if (chunk === null) {
      if (stream.destroyed) throw new Error('the stream closed early')
      await once(stream, 'readable')
    } else {
      chunks.push(chunk.subarray(0, left))
      if (chunk.length > left) stream.unshift(chunk.subarray(left))
      left -= chunk.length
    }
  }
  return Buffer.concat(chunks)
}

describe('a WebSocket over HTTP/2', () => {
  test('is announced, and opened at the service as one over HTTP/1.1', async (t) => {
    const service = await webSocketService(t)
    const plane = await Plane.start(t, [edgeOf(service)])
    const over = await session(t, plane)
    assert.equal(over.remoteSettings.enableConnectProtocol, true)
    const stream = dial(over, { 'sec-websocket-protocol': 'chat' })
    const head = await answered(stream)
    assert.equal(head[':status'], 200)
    assert.equal(head['x-public'], '1')
    for (const name of ['sec-websocket-accept', 'upgrade', 'connection']) assert.equal(head[name], undefined, name)
    const lines = service.seen.head.split('\r\n')
    assert.equal(lines[0], 'GET /ws?a=b HTTP/1.1')
    for (const line of ['Connection: Upgrade', 'Upgrade: websocket', 'sec-websocket-protocol: chat'])
      assert.ok(lines.includes(line), line)
    assert.match(service.seen.head, /\r\nsec-websocket-version: 13\r\n/)
    assert.match(service.seen.head, /\r\nSec-WebSocket-Key: [A-Za-z0-9+/]{22}==\r\n/)
    assert.doesNotMatch(service.seen.head, /content-length|transfer-encoding/i)
  })

  test('has the key that the visitor sent, if any, and the answer to it', async (t) => {
    const service = await webSocketService(t)
    const plane = await Plane.start(t, [edgeOf(service)])
    const key = 'dGhlIHNhbXBsZSBub25jZQ=='
    const head = await answered(dial(await session(t, plane), { 'sec-websocket-key': key }))
    assert.deepEqual([head[':status'], head['sec-websocket-accept']], [200, acceptOf(key)])
    assert.equal(service.seen.head.split(key).length, 2)
  })

  test('carries frames both ways untouched, small and large, and each end', async (t) => {
    const service = await webSocketService(t)
    const plane = await Plane.start(t, [edgeOf(service)])
    const stream = dial(await session(t, plane))
    await answered(stream)
    const small = clientFrame('text', Buffer.from('hello'))
    stream.write(small)
    assert.deepEqual(await take(stream, small.length), small)
    const large = clientFrame('binary', Buffer.alloc(3_000_000, 'x'))
    stream.write(large)
    assert.ok((await take(stream, large.length)).equals(large))
    stream.end()
    stream.resume()
    await once(stream, 'close')
    assert.equal(stream.rstCode, constants.NGHTTP2_NO_ERROR)
    assert.ok(service.seen.bytes.equals(Buffer.concat([small, large])))
    const { status, bytesIn, bytesOut, isCut, method, version } = await plane.record()
    const sum = small.length + large.length
    assert.deepEqual([status, bytesIn, bytesOut, isCut, method, version], [101, sum, sum, false, 'GET', '2'])
  })

  test('still sends when the service has ended its side, and is whole when the visitor then resets', async (t) => {
    const service = await webSocketService(t, { onJoined: (socket) => socket.end('bye') })
    const plane = await Plane.start(t, [edgeOf(service)])
    const stream = dial(await session(t, plane))
    await answered(stream)
    assert.equal((await take(stream, 3)).toString(), 'bye')
    stream.resume()
    await once(stream, 'end')
    stream.write('late')
    const socket = await service.joined
    while (service.seen.bytes.length < 4) await once(socket, 'data')
    stream.close(constants.NGHTTP2_CANCEL)
    const { isCut, bytesIn, bytesOut } = await plane.record()
    assert.deepEqual([isCut, bytesIn, bytesOut], [false, 4, 3])
  })

  test('sends early bytes to a service only after its 101', async (t) => {
    const asked = Promise.withResolvers<{ socket: Socket; answer: string }>()
    const seen: string[] = []
    const service = await rawService(t, (socket) => {
      socket
        .on('error', () => {})
        .on('data', (chunk: Buffer) => {
          seen.push(chunk.toString('latin1'))
          const key = /sec-websocket-key: (.*)\r\n/i.exec(seen.join(''))?.[1]
          if (key !== undefined) asked.resolve({ socket, answer: usual({ key }) })
        })
    })
    const plane = await Plane.start(t, [edgeOf(service)])
    const over = await session(t, plane)
    const stream = dial(over)
    stream.write('early')
    const { socket, answer } = await asked.promise
    // What was sent before is at the edge when this is answered.
    await new Promise((resolve) => over.ping(resolve))
    assert.match(seen.join(''), /\r\n\r\n$/)
    socket.write(answer)
    while (!seen.join('').endsWith('\r\n\r\nearly')) await once(socket, 'data')
    assert.equal((await answered(stream))[':status'], 200)
  })

  test('that waits for its 101, or for a service that does not read, holds at most 256 KiB', async (t) => {
    for (const answer of [() => '', usual]) {
      const service = await webSocketService(t, { answer, onJoined: (socket) => socket.pause() })
      const plane = await Plane.start(t, [edgeOf(service)])
      const over = await session(t, plane)
      const stream = dial(over)
      if (answer === usual) await answered(stream)
      let taken = 0
      const sent = 16 * 1024 * 1024
      for (let at = 0; at < sent; at += 65_536)
        stream.write(Buffer.alloc(65_536), () => {
          taken += 65_536
        })
      // Each answer comes after what was sent before it; the system's own buffers fill up as well.
      let before = -1
      for (let quiet = 0; quiet < 20; before = taken) {
        await new Promise((resolve) => over.ping(resolve))
        quiet = taken === before ? quiet + 1 : 0
      }
      if (answer === usual) assert.ok(taken < sent, String(taken))
      else assert.ok(taken <= 256 * 1024, String(taken))
      assert.equal((await askOver(over, { host: 'b.test' })).status, 404, 'others go on')
    }
  })

  const refusals: Record<string, [answer: string, status: number]> = {
    'one that declines': ['HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno', 403],
    'one that answers 200': ['HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno', 200],
    'a 101 without an accepted key': [
      'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
      502,
    ],
    'a 101 with another key': [usual({ key: 'other' }), 502],
    'a 101 for another protocol': [
      'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: shout\r\n\r\n',
      502,
    ],
  }
  for (const [name, [answer, status]] of Object.entries(refusals)) {
    test(`does not reach a service that accepts none: ${name}`, async (t) => {
      const service = await webSocketService(t, { answer: () => answer })
      const plane = await Plane.start(t, [edgeOf(service)])
      const over = await session(t, plane)
      const stream = dial(over)
      stream.write('early bytes')
      assert.equal((await answered(stream))[':status'], status)
      stream.resume()
      await once(stream, 'close')
      const record = await plane.record()
      assert.deepEqual([record.status, record.isCut], [status, false])
      assert.equal(service.seen.bytes.length, 0)
      assert.equal(record.fault, status === 502 ? 'UPSTREAM_INVALID' : undefined)
      assert.equal((await askOver(over, { host: 'b.test' })).status, 404, 'the connection goes on')
    })
  }

  test('is refused by a guard like any request, and the visitor may still be sending', async (t) => {
    const service = await webSocketService(t)
    const guard: Phases['request'] = (ctx) =>
      ctx.isUpgrade && ctx.method === 'GET' ? { refuse: 'IP_REFUSED' } : undefined
    const routes = [{ backend: service.backend, request: guard ? [guard] : [] }]
    const plane = await Plane.start(t, [testEdge({ names: ['a.test'], routes })])
    const stream = dial(await session(t, plane))
    stream.write('early bytes')
    assert.equal((await answered(stream))[':status'], 403)
    stream.resume()
    await once(stream, 'close')
    assert.equal(service.dials, 0)
  })

  test('that is reset at either end is reset at the other', async (t) => {
    const service = await webSocketService(t)
    const plane = await Plane.start(t, [edgeOf(service)])
    const over = await session(t, plane)
    const stream = dial(over)
    await answered(stream)
    const gone = once(await service.joined, 'close')
    stream.close(constants.NGHTTP2_CANCEL)
    await gone
    assert.equal((await plane.record()).isCut, true)

    const crashing = await webSocketService(t, { onJoined: (socket) => socket.resetAndDestroy() })
    const other = await Plane.start(t, [edgeOf(crashing)])
    const cut = dial(await session(t, other))
    cut.resume()
    await once(cut, 'close')
    assert.equal(cut.rstCode, constants.NGHTTP2_CANCEL)
    assert.equal((await other.record()).isCut, true)
  })

  test('that is reset while nothing reads it still ends', async (t) => {
    const service = await webSocketService(t, { onJoined: (socket) => socket.pause() })
    const plane = await Plane.start(t, [edgeOf(service)])
    const over = await session(t, plane)
    const stream = dial(over)
    await answered(stream)
    for (let written = 0; written < 64; written++) if (!stream.write(Buffer.alloc(65_536))) break
    await new Promise((resolve) => over.ping(resolve))
    stream.close(constants.NGHTTP2_CANCEL)
    assert.equal((await plane.record()).isCut, true)
  })

  test('on which nothing moves for too long ends', async (t) => {
    const service = await webSocketService(t)
    const plane = await Plane.start(t, [edgeOf(service)], { idleMs: 50 })
    const stream = dial(await session(t, plane))
    stream.resume()
    await once(stream, 'close')
    assert.equal(stream.rstCode, constants.NGHTTP2_CANCEL)
    assert.equal((await plane.record()).isCut, true)
  })

  test('that a stricter edge refuses ends, and the connection goes on', async (t) => {
    const service = await webSocketService(t)
    const edge = edgeOf(service)
    const plane = await Plane.start(t, [edge])
    const over = await session(t, plane)
    const stream = dial(over)
    await answered(stream)
    const stricter = { ...edge, accept: [() => ({ refuse: 'IP_REFUSED' as const })] }
    plane.proxy.judgeAgain(new Set([edge.id]), () => stricter)
    stream.resume()
    await once(stream, 'close')
    assert.equal(stream.rstCode, constants.NGHTTP2_CANCEL)
    assert.equal(over.destroyed, false)
    assert.equal((await plane.record()).isCut, true)
  })

  test('goes on while its connection drains, which closes after it', async (t) => {
    const service = await webSocketService(t)
    const plane = await Plane.start(t, [edgeOf(service)])
    const over = await session(t, plane)
    const stream = dial(over)
    await answered(stream)
    const told = once(over, 'goaway')
    for (const connection of plane.connections) connection.drain()
    await told
    stream.write('more')
    assert.equal((await take(stream, 4)).toString(), 'more')
    stream.end()
    stream.resume()
    await once(over, 'close')
    assert.equal((await plane.record()).isCut, false)
  })

  test('whose visitor does not read holds little, and stalls no other on its connection', async (t) => {
    const BYTES = 8 * 1024 * 1024
    const flooded = Promise.withResolvers<Socket>()
    const service = await webSocketService(t, {
      onJoined: (socket) => {
        socket.write(Buffer.alloc(BYTES))
        flooded.resolve(socket)
      },
    })
    const calm = await httpService(t, (_asked, response) => response.end('calm'))
    const routes = [{ backend: service.backend }, { match: '/calm', backend: calm.backend }]
    const plane = await Plane.start(t, [testEdge({ names: ['a.test'], routes })])
    const over = await session(t, plane)
    const stream = dial(over)
    await answered(stream)
    await flooded.promise
    for (let i = 0; i < 3; i++) assert.equal((await askOver(over, { path: '/calm' })).text, 'calm')
    assert.ok(stream.readableLength < BYTES / 8)
    assert.equal((await take(stream, BYTES)).length, BYTES)
  })
})

describe('a route that turns WebSocket into bytes', () => {
  test('takes one over HTTP/2', async (t) => {
    const service = await rawService(t, (socket) => socket.on('error', () => {}).pipe(socket))
    const { request: asked, bridge } = compileWebsocketTcpConverter()
    const routes = [{ backend: service.backend, request: asked ? [asked] : [], bridge }]
    const plane = await Plane.start(t, [testEdge({ names: ['a.test'], routes })])
    const over = await session(t, plane)
    const stream = dial(over)
    assert.equal((await answered(stream))[':status'], 200)
    stream.write(clientFrame('text', Buffer.from('hello')))
    assert.equal((await take(stream, 7)).toString('latin1'), '\x82\x05hello')
    const old = dial(over, { 'sec-websocket-version': '8' })
    assert.equal((await answered(old))[':status'], 400)
    assert.equal((await ask(t, plane, '2')).status, 400)
  })
})
