import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { test } from 'node:test'
import type { ByteSink, ByteStream } from '../../lib/bytes/byte-stream.ts'
import { socketStream } from '../../lib/bytes/socket-stream.ts'
import { request } from '../testing/test-request.ts'
import { bridgeWebSocket } from './bridge.ts'
import { clientFrame } from './testing/test-client.ts'
import { compileWebsocketTcpConverter } from './traffic.ts'

/** A converter on its own port in front of `backend`, which is called for each connection. */
async function converter(t: { after(end: () => void): void }, backend: (socket: Socket) => void): Promise<string> {
  const behind = await listen(t, backend)
  const phases = compileWebsocketTcpConverter()
  const front = await listen(t, (socket) => {
    socket.once('data', (bytes: Buffer) => {
      const headers: Record<string, string> = Object.fromEntries(
        [...bytes.toString('latin1').matchAll(/^([\w-]+): (.*)\r$/gm)].map(([, n, v]) => [n, v]),
      )
      const ctx = request({ isUpgrade: true, headers })
      assert.equal(phases.request?.(ctx), undefined)
      const guid = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
      const accept = createHash('sha1')
        .update(`${ctx.headers.get('sec-websocket-key')}${guid}`)
        .digest('base64')
      const lines = ['Connection: Upgrade', 'Upgrade: websocket', `Sec-WebSocket-Accept: ${accept}`].join('\r\n')
      socket.write(`HTTP/1.1 101 Switching Protocols\r\n${lines}\r\n\r\n`)
      const upstream = connect({ port: portOf(behind), host: '127.0.0.1', allowHalfOpen: true })
      phases.bridge?.(socketStream(socket), socketStream(upstream))
    })
  })
  return `ws://127.0.0.1:${portOf(front)}/`
}

async function listen(t: { after(end: () => void): void }, serve: (socket: Socket) => void): Promise<Server> {
  const sockets = new Set<Socket>()
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    serve(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return server
}

const portOf = (server: Server): number => (server.address() as AddressInfo).port

async function open(url: string): Promise<WebSocket> {
  const socket = new WebSocket(url)
  socket.binaryType = 'arraybuffer'
  await once(socket, 'open')
  return socket
}

function received(socket: WebSocket, bytes: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let total = 0
  return new Promise((resolve) => {
    socket.addEventListener('message', ({ data }) => {
      chunks.push(Buffer.from(data as ArrayBuffer))
      total += (data as ArrayBuffer).byteLength
      if (total >= bytes) resolve(Buffer.concat(chunks))
    })
  })
}

const hash = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')

test('a real client: messages of both kinds reach the backend as bytes, and bytes come back', async (t) => {
  const url = await converter(t, (socket) => socket.pipe(socket))
  const socket = await open(url)
  const echo = received(socket, 11)
  socket.send('héllo ')
  socket.send(Buffer.from('1234'))
  assert.equal((await echo).toString(), 'héllo 1234')
  socket.close()
  const [event] = (await once(socket, 'close')) as [CloseEvent]
  assert.deepEqual([event.code, event.wasClean], [1000, true])
})

test('a real client: 4 MB both ways arrive unchanged', async (t) => {
  const url = await converter(t, (socket) => socket.pipe(socket))
  const socket = await open(url)
  const bytes = randomBytes(4_000_000)
  const echo = received(socket, bytes.length)
  for (let at = 0; at < bytes.length; at += 333_333) socket.send(bytes.subarray(at, at + 333_333))
  assert.equal(hash(await echo), hash(bytes))
  socket.close()
  await once(socket, 'close')
})

test('a real client: when the backend is done, the connection closes with 1000 after its last byte', async (t) => {
  const url = await converter(t, (socket) => socket.end('bye'))
  const socket = new WebSocket(url)
  socket.binaryType = 'arraybuffer'
  const closed = once(socket, 'close')
  assert.equal((await received(socket, 3)).toString(), 'bye')
  const [event] = (await closed) as [CloseEvent]
  assert.deepEqual([event.code, event.wasClean], [1000, true])
})

test('when the visitor closes, the backend gets all bytes and a clean end', async (t) => {
  const got = Promise.withResolvers<string>()
  const url = await converter(t, (socket) => {
    let text = ''
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString()
    })
    socket.on('end', () => {
      got.resolve(text)
      socket.end()
    })
  })
  const socket = await open(url)
  socket.send('all of it')
  socket.close()
  assert.equal(await got.promise, 'all of it')
})

/** A stream to see from both ends. */
function stream() {
  let sink: ByteSink | undefined
  const seen = { written: [] as Buffer[], isEnded: false, isReset: false, isPaused: false, hasRoom: true }
  const port: ByteStream = {
    write(chunk) {
      seen.written.push(chunk)
      return seen.hasRoom
    },
    end() {
      seen.isEnded = true
    },
    reset() {
      seen.isReset = true
    },
    attach(given) {
      sink = given
    },
    pause() {
      seen.isPaused = true
    },
    resume() {
      seen.isPaused = false
    },
  }
  return { port, seen, sink: () => sink ?? assert.fail('nothing is attached'), text: () => Buffer.concat(seen.written) }
}

function bridged() {
  const [visitor, backend] = [stream(), stream()]
  bridgeWebSocket(visitor.port, backend.port)
  return { visitor, backend }
}

/** Ends a bridge, so that no timer is left. */
function over({ visitor, backend }: ReturnType<typeof bridged>): void {
  visitor.sink().closed(undefined)
  backend.sink().closed(undefined)
}

test('a broken frame closes with 1002, and the backend sees no clean end', () => {
  const both = bridged()
  both.visitor.sink().data(Buffer.from('810548656c6c6f', 'hex'))
  assert.equal(both.visitor.text().toString('hex'), '880203ea')
  assert.ok(both.visitor.seen.isEnded && both.backend.seen.isReset)
  over(both)
})

test('pings are answered here, also while the visitor does not read: with the newest one', () => {
  const both = bridged()
  const { visitor, backend } = both
  visitor.sink().data(clientFrame('ping', Buffer.from('a')))
  assert.equal(visitor.text().toString('hex'), '8a0161')
  visitor.seen.hasRoom = false
  backend.sink().data(Buffer.from('x'))
  for (const each of ['b', 'c', 'd']) visitor.sink().data(clientFrame('ping', Buffer.from(each)))
  assert.equal(visitor.seen.written.length, 2)
  visitor.seen.hasRoom = true
  visitor.sink().drain()
  assert.equal(visitor.seen.written.at(-1)?.toString('hex'), '8a0164')
  assert.equal(backend.text().length, 0)
  over(both)
})

test('backpressure of each side pauses the other', () => {
  const both = bridged()
  const { visitor, backend } = both
  backend.seen.hasRoom = false
  visitor.sink().data(clientFrame('binary', Buffer.from('x')))
  assert.ok(visitor.seen.isPaused)
  backend.sink().drain()
  assert.ok(!visitor.seen.isPaused)
  visitor.seen.hasRoom = false
  backend.sink().data(Buffer.alloc(100_000))
  assert.ok(backend.seen.isPaused)
  visitor.sink().drain()
  assert.ok(!backend.seen.isPaused)
  over(both)
})

test('bytes of a long frame are passed on before the frame is complete', () => {
  const both = bridged()
  const frame = clientFrame('binary', Buffer.alloc(1_000_000, 'x'))
  both.visitor.sink().data(frame.subarray(0, 1000))
  assert.equal(both.backend.text().length, 1000 - 14)
  over(both)
})

test('after the close frame nothing more is sent, and what arrives is dropped', () => {
  const both = bridged()
  const { visitor, backend } = both
  backend.sink().end()
  assert.equal(visitor.text().toString('hex'), '880203e8')
  visitor.sink().data(clientFrame('binary', Buffer.from('late')))
  visitor.sink().data(clientFrame('ping', Buffer.from('late')))
  backend.sink().data(Buffer.from('late'))
  assert.equal(visitor.seen.written.length, 1)
  assert.equal(backend.seen.written.length, 0)
  over(both)
})

test('a broken backend closes the visitor with 1011, and a broken visitor resets the backend', () => {
  const first = bridged()
  first.backend.sink().closed(new Error('reset'))
  assert.equal(first.visitor.text().toString('hex'), '880203f3')
  first.visitor.sink().closed(undefined)
  const second = bridged()
  second.visitor.sink().closed(new Error('reset'))
  assert.ok(second.backend.seen.isReset)
  second.backend.sink().closed(undefined)
})

test('a side that does not close after the close frame is reset', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const stuck = bridged()
  stuck.visitor.sink().data(clientFrame('close', Buffer.alloc(0)))
  t.mock.timers.tick(59_999)
  assert.ok(!stuck.visitor.seen.isReset && !stuck.backend.seen.isReset)
  t.mock.timers.tick(1)
  assert.ok(stuck.visitor.seen.isReset && stuck.backend.seen.isReset)
  over(stuck)
})

test('a backend that stays open after its visitor is gone is reset', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const both = bridged()
  both.visitor.sink().closed(undefined)
  assert.ok(both.backend.seen.isEnded)
  t.mock.timers.tick(60_000)
  assert.ok(both.backend.seen.isReset)
})

test('a bridge that has ended resets nothing later', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const both = bridged()
  over(both)
  t.mock.timers.tick(3_600_000)
  assert.ok(!both.visitor.seen.isReset && !both.backend.seen.isReset)
})
