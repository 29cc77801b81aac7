import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { after, before, describe, test } from 'node:test'
import { createServer as createTlsServer } from 'node:tls'
import { type TlsIdentity, tlsIdentity } from '../../test/support/tls-identity.ts'
import { Secret } from '../lib/secrets/secret.ts'
import type { ProxyHeader } from '../link/wire/proxy-header.ts'
import { Agent, type AgentOptions } from './agent.ts'
import { type DialUpstream, ServiceFault, type UpstreamTls, upstreamDialer } from './dial-upstream.ts'
import type { AgentEvent } from './events.ts'
import type { ForwardTarget } from './forward.ts'
import { TestServer } from './testing/test-server.ts'
import { TestTimers } from './testing/test-timers.ts'
import { parseUpstream } from './upstream.ts'

let identity: TlsIdentity
let testServer: TestServer
before(async () => {
  identity = await tlsIdentity()
  testServer = await TestServer.start(identity)
})
const closing: (() => unknown)[] = []
after(async () => {
  for (const close of closing) await close()
  await testServer.close()
})

/**
 * A service on ::1 whose port is unused on 127.0.0.1, which the agent tries first: a listener of another test there would
 * accept the visitor and keep it. A connection to `other` reserves the port.
 */
async function onSixAlone(other: number): Promise<number> {
  for (;;) {
    const port = await service((socket) => socket.end('::1'), { host: '::1' })
    const holder = connect({ host: '127.0.0.1', port: other, localAddress: '127.0.0.1', localPort: port })
    const isHeld = await once(holder, 'connect').then(
      () => true,
      () => false,
    )
    closing.push(() => holder.destroy())
    if (isHeld) return port
  }
}

async function service(serve: (socket: Socket) => void, listen: { host?: string; path?: string; tls?: boolean } = {}) {
  const { host = '127.0.0.1', path, tls = false } = listen
  const server: Server = tls
    ? createTlsServer({ cert: identity.cert, key: identity.key, allowHalfOpen: true } as object, serve)
    : createServer({ allowHalfOpen: true }, serve)
  if (path === undefined) server.listen(0, host)
  else server.listen(path)
  await once(server, 'listening')
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => {}).on('close', () => sockets.delete(socket))
  })
  closing.push(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return path === undefined ? (server.address() as AddressInfo).port : 0 // it listens on a port
}

interface Through {
  readonly addr: string | number
  readonly tls?: UpstreamTls
  readonly target?: Partial<ForwardTarget>
  readonly header?: Partial<ProxyHeader>
  readonly options?: Partial<AgentOptions>
}

/** A tunnel to `addr`, a visitor in it, and the agent's events. */
async function tunnelTo({ addr, tls = {}, target = {}, header = {}, options = {} }: Through) {
  const events: AgentEvent[] = []
  const agent = new Agent({
    server: { host: '127.0.0.1', port: testServer.port },
    ca: identity.ca,
    authtoken: new Secret('token'),
    version: '1.2.3',
    onEvent: (event) => events.push(event),
    ...options,
  })
  await agent.start()
  closing.push(() => agent.close())
  const upstream = parseUpstream(String(addr), { scheme: 'http' })
  const dial = upstreamDialer(upstream, tls)
  const tunnel = await agent.open({
    name: 'test',
    asks: { proto: 'https', opts: {} },
    forwardsTo: upstream.url,
    forwardsProto: '',
    metadata: '',
    target: { dial, takesProxyLine: false, isHttp2: false, isInspected: true, ...target },
  })
  const session = testServer.latest
  const visit = (more: Partial<ProxyHeader> = {}) => testServer.visit(tunnel.id, { ...header, ...more }, session)
  return { agent, tunnel, events, visit }
}

async function all(stream: Duplex): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk as Buffer) // no encoding is set
  return Buffer.concat(chunks)
}

function hash(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}

/** Echoes everything once the sender has ended. */
function echoAtEnd(socket: Socket): void {
  void all(socket).then((bytes) => socket.end(bytes))
}

describe('a connection through an agent', () => {
  test('8 MB each way arrive as they were sent, and each way ends on its own', async () => {
    const { visit, events } = await tunnelTo({ addr: await service(echoAtEnd) })
    const sent = randomBytes(8 * 1024 * 1024)
    const visitor = visit()
    visitor.end(sent)
    assert.equal(hash(await all(visitor)), hash(sent))
    await nextEvent(events, 'connection-closed')
    const [closed] = events.filter((event) => event.type === 'connection-closed')
    assert.equal(closed?.end.error, undefined)
    assert.deepEqual([closed?.end.bytesIn, closed?.end.bytesOut], [sent.length, sent.length])
  })

  test('a service that has ended its side can still be written to', async () => {
    const got = Promise.withResolvers<string>()
    const port = await service((socket) => {
      socket.end('hello')
      void all(socket).then((bytes) => got.resolve(String(bytes)))
    })
    const visitor = (await tunnelTo({ addr: port })).visit()
    assert.equal(String(await all(visitor)), 'hello')
    visitor.end('late words')
    assert.equal(await got.promise, 'late words')
  })

  test('a service that reads nothing slows down its visitor, and nobody else', async () => {
    const port = await service((socket) => {
      socket.once('readable', () => {})
    })
    const { visit, agent } = await tunnelTo({ addr: port })
    const stalled = visit()
    let sent = 0
    const pour = (): void => {
      while (sent < 64 * 1024 * 1024) {
        sent += 65_536
        if (!stalled.write(Buffer.alloc(65_536))) return
      }
    }
    stalled.on('drain', pour)
    pour()
    const { visit: visitQuick } = await tunnelTo({ addr: await service(echoAtEnd) })
    for (let before = -1, still = 0; still < 20; still = sent === before ? still + 1 : 0) {
      before = sent
      const quick = visitQuick()
      quick.end('ping')
      assert.equal(String(await all(quick)), 'ping')
    }
    // Windows on the wire and the buffers of two sockets, not the 64 MB on offer.
    assert.ok(sent < 16 * 1024 * 1024, `${sent} bytes went in`)
    assert.equal(agent.figures.open, 1)
    stalled.destroy()
  })

  test('a visitor that resets its connection resets the one to the service', async () => {
    const ended = Promise.withResolvers<string>()
    const port = await service((socket) => {
      socket.on('error', ({ message }) => ended.resolve(message))
      socket.resume()
    })
    const { visit, events } = await tunnelTo({ addr: port })
    const visitor = visit()
    visitor.write('x')
    await nextEvent(events, 'connection-opened')
    await new Promise((resolve) => setImmediate(resolve))
    visitor.destroy()
    assert.match(await ended.promise, /ECONNRESET/)
  })

  test('a service at localhost is found on IPv4 and IPv6', async (t) => {
    const four = await service((socket) => socket.end('127.0.0.1'))
    const ports = [four]
    try {
      ports.push(await onSixAlone(four))
    } catch {
      t.diagnostic('no ::1 on this machine')
    }
    for (const port of ports) {
      const { visit } = await tunnelTo({ addr: `localhost:${port}` })
      for (let i = 0; i < 2; i++) assert.match(String(await all(visit())), /127\.0\.0\.1|::1/)
    }
  })

  test('a Unix socket is a service too', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'postern-agent-'))
    t.after(() => rmSync(folder, { recursive: true }))
    const path = join(folder, 'app.sock')
    await service((socket) => socket.end('from the socket'), { path })
    const { visit } = await tunnelTo({ addr: `unix:${path}` })
    assert.equal(String(await all(visit())), 'from the socket')
  })

  test('a handler in this process is a service too, and its errors affect only its connection', async () => {
    const accept = (connection: Duplex): void => {
      connection.once('data', (chunk) => {
        if (String(chunk) === 'bad') connection.destroy(new Error('handler'))
        else connection.end(`you said ${chunk}`)
      })
    }
    const { agent } = await tunnelTo({ addr: 1 })
    const tunnel = await agent.open({
      name: 'handler',
      asks: { proto: 'tcp', opts: {} },
      forwardsTo: '',
      forwardsProto: '',
      metadata: '',
      target: { accept },
    })
    const bad = testServer.visit(tunnel.id)
    bad.end('bad')
    await assert.rejects(all(bad), /reset the stream/)
    const good = testServer.visit(tunnel.id)
    good.end('hi')
    assert.equal(String(await all(good)), 'you said hi')
  })
})

describe('a service with TLS', () => {
  test('is reached over TLS, without a check of its certificate, and half-close works', async () => {
    const { visit } = await tunnelTo({ addr: `https://localhost:${await service(echoAtEnd, { tls: true })}` })
    for (let i = 0; i < 3; i++) {
      const sent = randomBytes(300_000)
      const visitor = visit({ proto: 'https' })
      visitor.end(sent)
      assert.equal(hash(await all(visitor)), hash(sent))
    }
  })

  test('gets traffic that is TLS already unchanged', async () => {
    const port = await service(echoAtEnd)
    const { visit } = await tunnelTo({
      addr: `tls://localhost:${port}`,
      header: { passthroughTls: true, proto: 'tls' },
    })
    const visitor = visit()
    visitor.end('\x16\x03\x01')
    assert.equal(String(await all(visitor)), '\x16\x03\x01')
  })

  const checked: [name: string, tls: (identity: TlsIdentity) => UpstreamTls, says: RegExp][] = [
    ['of a CA that was named is taken', ({ ca }) => ({ ca }), /^hello$/],
    ['of an unknown CA is refused when asked to verify', () => ({ verify: true }), /stream_refused/],
    ['of another name is refused', ({ ca }) => ({ ca, serverName: 'other.example' }), /stream_refused/],
  ]
  for (const [name, tls, says] of checked) {
    test(`a certificate ${name}`, async () => {
      const port = await service((socket) => socket.end('hello'), { tls: true })
      const { visit } = await tunnelTo({
        addr: `https://localhost:${port}`,
        tls: tls(identity),
        header: { proto: 'https' },
      })
      // More than once, since a resumed session must be treated the same.
      for (let i = 0; i < 3; i++) assert.match(String(await all(visit()).catch(String)), says)
    })
  }

  const lines: [name: string, line: Buffer][] = [
    ['a PROXY header of version 1', Buffer.from('PROXY TCP4 192.0.2.1 192.0.2.2 4711 443\r\n')],
    ['a PROXY header of version 1 that knows nothing', Buffer.from('PROXY UNKNOWN\r\n')],
    [
      'a PROXY header of version 2',
      Buffer.concat([
        Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1'),
        Buffer.from('2111000cc0000201c000020212671a0b', 'hex'),
      ]),
    ],
    ['no PROXY header at all', Buffer.alloc(0)],
  ]
  for (const [name, line] of lines) {
    for (const isCut of [false, true]) {
      test(`${name} goes ahead of it${isCut ? ', byte by byte' : ''}`, async () => {
        const { ports, got } = await proxiedTls(line.length)
        const { visit } = await tunnelTo({
          addr: `tls://localhost:${ports}`,
          target: { takesProxyLine: true },
        })
        const visitor = visit()
        const bytes = Buffer.concat([line, Buffer.from('PRO hidden words')])
        if (isCut) {
          for (const byte of bytes) {
            visitor.write(Buffer.of(byte))
            await new Promise((resolve) => setImmediate(resolve))
          }
          visitor.end()
        } else visitor.end(bytes)
        assert.deepEqual(await got, { line, text: 'PRO hidden words' })
      })
    }
  }

  /** A service that reads `bytes` of PROXY header and then speaks TLS. */
  async function proxiedTls(bytes: number) {
    const { promise: got, resolve } = Promise.withResolvers<{ line: Buffer; text: string }>()
    const secured = createTlsServer({ cert: identity.cert, key: identity.key })
    let line = Buffer.alloc(0)
    secured.on('secureConnection', (socket) => {
      void all(socket).then((text) => resolve({ line, text: String(text) }))
    })
    const ports = await service((socket) => {
      const take = (): void => {
        line = bytes === 0 ? line : Buffer.from((socket.read(bytes) as Buffer | null) ?? '')
        if (line.length < bytes) socket.once('readable', take)
        else secured.emit('connection', socket)
      }
      take()
    })
    return { ports, got }
  }
})

describe('an unreachable service', () => {
  for (const isWatched of [true, false]) {
    test(`leaves the response to the server${isWatched ? ', and the request is shown' : ''}`, async () => {
      const { visit, events, agent } = await tunnelTo({ addr: 'http://127.0.0.1:1', options: { isWatched } })
      const visitor = visit({ proto: 'https', requestId: 'r1' })
      visitor.write('GET /a?b HTTP/1.1\r\nHost: x\r\n\r\n')
      await assert.rejects(all(visitor), /stream_refused/)
      await nextEvent(events, 'connection-closed')
      const [closed] = events.filter((event) => event.type === 'connection-closed')
      assert.equal(closed?.end.requestId, 'r1')
      assert.match(String(closed?.end.error), /nothing listens at http:\/\/127\.0\.0\.1:1/)
      const seen = agent.figures.recent.map(({ tunnel, method, path, status }) => [tunnel, method, path, status])
      assert.deepEqual(seen, isWatched ? [['test', 'GET', '/a?b', 502]] : [])
    })
  }

  test('a visitor that sends nothing is refused all the same', async () => {
    const { visit, agent } = await tunnelTo({ addr: '127.0.0.1:1', options: { isWatched: true } })
    await assert.rejects(all(visit({ proto: 'https' })), /stream_refused/)
    assert.deepEqual(agent.figures.recent, [])
  })

  test('is reported once, and is reported back as soon as it listens, without any visitor', async () => {
    const free = createServer().listen(0, '127.0.0.1')
    await once(free, 'listening')
    const { port: down } = free.address() as AddressInfo // it listens on a port
    free.close()
    await once(free, 'close')
    const timers = new TestTimers()
    const { visit, events } = await tunnelTo({ addr: `127.0.0.1:${down}`, options: { timers } })
    for (let i = 0; i < 3; i++) await assert.rejects(all(visit()), /stream_refused/)
    const count = (type: AgentEvent['type']): number => events.filter((event) => event.type === type).length
    assert.equal(count('service-down'), 1)
    timers.pass(1000)
    while (timers.next === undefined || timers.next > 1000) await new Promise((resolve) => setImmediate(resolve))
    assert.equal(count('service-up'), 0, 'it was tried, and is still down')
    const back = createServer((socket) => socket.destroy()).listen(down, '127.0.0.1')
    closing.push(() => back.close())
    await once(back, 'listening')
    timers.pass(1000)
    await nextEvent(events, 'service-up')
    assert.equal(count('service-down'), 1)
  })

  test('is reported as back as soon as a visitor reaches it', async () => {
    let fault: ServiceFault | undefined = new ServiceFault('it sleeps')
    const port = await service((socket) => socket.end('here'))
    const awake = upstreamDialer(parseUpstream(`127.0.0.1:${port}`))
    const dial: DialUpstream = (request, done) => {
      if (!fault) return awake(request, done)
      done(fault)
      return () => {}
    }
    const timers = new TestTimers()
    const { visit, events } = await tunnelTo({ addr: port, target: { dial }, options: { timers } })
    await assert.rejects(all(visit()), /stream_refused/)
    await nextEvent(events, 'service-down')
    fault = undefined
    assert.equal(String(await all(visit())), 'here')
    await nextEvent(events, 'service-up')
  })

  test('is no longer tried once its tunnel is closed', async () => {
    const timers = new TestTimers()
    const { agent, tunnel, visit, events } = await tunnelTo({ addr: '127.0.0.1:1', options: { timers } })
    const waiting = timers.waiting
    await assert.rejects(all(visit()), /stream_refused/)
    await nextEvent(events, 'service-down')
    assert.equal(timers.waiting, waiting + 1)
    await agent.closeTunnel(tunnel)
    assert.equal(timers.waiting, waiting)
  })

  const silent: [name: string, header: Partial<ProxyHeader>, target?: Partial<ForwardTarget>][] = [
    ['a TCP visitor', { proto: 'tcp' }],
    ['a visitor in TLS of its own', { proto: 'tls', passthroughTls: true }],
    ['a visitor in HTTP/2', { proto: 'https' }, { isHttp2: true }],
  ]
  for (const [name, header, target] of silent) {
    test(`${name} is refused without a response`, async () => {
      const { visit } = await tunnelTo({ addr: '127.0.0.1:1', header, ...(target && { target }) })
      await assert.rejects(all(visit()), /stream_refused/)
    })
  }

  test('an upstream that never accepts is given up', async () => {
    const port = await service(() => {})
    const dial = upstreamDialer(parseUpstream(`https://127.0.0.1:${port}`), {}, 50)
    const result = await new Promise((resolve) => dial({ isPassthrough: false }, resolve))
    assert.match(String(result), /cannot be reached: no response within 0\.05 s/)
  })

  test('a visitor of an unknown tunnel is refused', async () => {
    const { visit } = await tunnelTo({ addr: 1 })
    await assert.rejects(all(visit({ id: 'tn_unknown' })), /stream_refused/)
  })

  // Well within the time that a dial may take.
  test('a visitor that disconnects while the service is dialled leaves nothing behind', { timeout: 5000 }, async () => {
    const left = Promise.withResolvers<void>()
    const port = await service((socket) => {
      socket.resume().on('close', () => left.resolve())
      socket.on('end', () => socket.end())
    })
    const { visit, agent, events } = await tunnelTo({ addr: `https://127.0.0.1:${port}` })
    const visitor = visit()
    await nextEvent(events, 'connection-opened')
    visitor.destroy()
    await nextEvent(events, 'connection-closed')
    assert.equal(agent.figures.open, 0)
    await left.promise
  })
})

test('a visitor that arrives together with the answer to the bind is served', async () => {
  const port = await service(echoAtEnd)
  const visitors: Duplex[] = []
  testServer.rules.onBound = (session, id) => {
    const visitor = testServer.visit(id, {}, session)
    visitor.end('early')
    visitors.push(visitor)
  }
  await tunnelTo({ addr: port })
  delete testServer.rules.onBound
  const [visitor] = visitors
  assert.ok(visitor)
  assert.equal(String(await all(visitor)), 'early')
})

test('requests are seen while somebody watches, and only then', async () => {
  const port = await service((socket) => {
    socket.on('data', () => void socket.write('HTTP/1.1 204 No Content\r\n\r\n'))
    socket.on('end', () => socket.end())
  })
  for (const isWatched of [true, false]) {
    const { visit, agent } = await tunnelTo({ addr: port, header: { proto: 'https' }, options: { isWatched } })
    const visitor = visit()
    for (const path of ['/', '/second?x=1']) {
      visitor.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`)
      await once(visitor, 'data')
    }
    visitor.end()
    await once(visitor.resume(), 'end')
    const seen = agent.figures.recent.map(({ method, path, status }) => [method, path, status])
    assert.deepEqual(
      seen,
      isWatched
        ? [
            ['GET', '/second?x=1', 204],
            ['GET', '/', 204],
          ]
        : [],
    )
  }
})

/** Waits until the agent emits such an event. */
async function nextEvent(events: readonly AgentEvent[], type: AgentEvent['type']): Promise<void> {
  while (!events.some((event) => event.type === type)) await new Promise((resolve) => setImmediate(resolve))
}
