/** Long and streamed traffic through an edge: events, gRPC, interim answers, trailers, large bodies. */
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { request as requestHttp } from 'node:http'
import type { ServerHttp2Stream } from 'node:http2'
import { connect } from 'node:net'
import type { Readable } from 'node:stream'
import { after, before, describe, test } from 'node:test'
import type { TLSSocket } from 'node:tls'
import { createGunzip } from 'node:zlib'
import { until } from '../support/until.ts'
import { http2Upstream, nobody, tcpUpstream } from '../support/upstream.ts'
import { ownAgent, sdkTunnel } from './edges/agents.ts'
import { listener, recorder } from './edges/upstreams.ts'
import {
  askHttp1,
  dialled,
  type EdgeEntry,
  type HttpVersion,
  http2Over,
  readToEnd,
  readUntil,
  versions,
} from './edges/visitor.ts'
import { World } from './edges/world.ts'

let world: World
before(async () => {
  world = await World.start()
})
after(() => world.stop())

const listenerName = (name: string): EdgeEntry => ({ name, port: world.platform.httpsPort, ca: world.platform.ca })

/** The pieces of a body, as they arrive. */
async function beginReading(
  socket: TLSSocket,
  { name, version, headers }: { name: string; version: HttpVersion; headers: Record<string, string> },
): Promise<Readable> {
  if (version === '2') return http2Over(socket, { name }).request({ ':path': '/', ...headers })
  const request = requestHttp({ headers: { host: name, ...headers }, createConnection: () => socket })
  request.on('error', () => {}).end()
  const [response] = (await once(request, 'response')) as [Readable]
  return response
}

describe('server-sent events', () => {
  for (const compression of [undefined, {}]) {
    for (const version of versions) {
      test(`arrive one by one over HTTP/${version}${compression ? ', compressed too' : ''}`, async (t) => {
        const { promise: begun, resolve: begin } = Promise.withResolvers<(text: string) => void>()
        const service = await recorder(t, (_, response) => {
          response.writeHead(200, { 'content-type': 'text/event-stream' })
          response.flushHeaders()
          begin((text) => void response.write(text))
        })
        const { name } = await world.httpsTo(service, compression && { compression })
        const socket = await dialled(listenerName(name), { version })
        const body = await beginReading(socket, { name, version, headers: { 'accept-encoding': 'gzip' } })
        let text = ''
        const events = compression ? body.pipe(createGunzip()) : body
        // The visitor leaves before the end of the body.
        events.on('error', () => {})
        events.on('data', (chunk) => {
          text += String(chunk)
        })
        const write = await begun
        for (const event of ['data: one\n\n', 'data: two\n\n', 'data: three\n\n']) {
          write(event)
          await until(`${event.trim()} is here before the next is sent`, () => text.endsWith(event))
        }
        assert.equal(text, 'data: one\n\ndata: two\n\ndata: three\n\n')
        socket.destroy()
      })
    }
  }

  for (const version of versions) {
    test(`the service notices when a visitor over HTTP/${version} disconnects`, async (t) => {
      const gone = Promise.withResolvers<void>()
      const service = await recorder(t, (request, response) => {
        response.write('first')
        request.once('close', gone.resolve)
      })
      const { name } = await world.httpsTo(service)
      const below = connect(world.platform.httpsPort, '127.0.0.1').on('error', () => {})
      const socket = await dialled(listenerName(name), { version, below })
      if (version === '2') http2Over(socket, { name }).request({ ':path': '/' })
      else socket.write(`GET / HTTP/1.1\r\nHost: ${name}\r\n\r\n`)
      await until('the service was asked', () => service.seen.length === 1)
      below.resetAndDestroy()
      await gone.promise
    })
  }
})

describe('gRPC', () => {
  const message = (text: string) => {
    const bytes = Buffer.from(text)
    const head = Buffer.alloc(5)
    head.writeUInt32BE(bytes.length, 1)
    return Buffer.concat([head, bytes])
  }

  /** Answers each message at once, in capitals; fails for an unknown method. */
  const service = (stream: ServerHttp2Stream, headers: Record<string, unknown>): void => {
    if (headers[':path'] === '/unknown') {
      stream.respond({ ':status': 200, 'content-type': 'application/grpc', 'grpc-status': '12' }, { endStream: true })
      return
    }
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
    stream.on('wantTrailers', () =>
      stream.sendTrailers({ 'grpc-status': '0', 'grpc-message': 'done', 'x-te': String(headers.te), 'x-sent': sent }),
    )
    let sent = 'none'
    stream.on('trailers', (trailers) => {
      sent = String(trailers['x-client'])
    })
    stream.on('data', (chunk: Buffer) => stream.write(message(chunk.toString('latin1', 5).toUpperCase())))
    stream.on('end', () => stream.end())
  }

  const agents: Record<
    string,
    (owner: Parameters<typeof ownAgent>[0], to: string, labels: Record<string, string>) => Promise<unknown>
  > = {
    'our agent': async (owner, addr, labels) =>
      (await ownAgent(owner, world)).forward({ addr, labels, app_protocol: 'http2' }),
    'the SDK': (owner, to, labels) => sdkTunnel(owner, world, { to, labels, isHttp2: true }),
  }
  for (const [agent, open] of Object.entries(agents)) {
    test(`goes through ${agent} that forwards HTTP/2, in both directions at once and with trailers`, async (t) => {
      const labels = { grpc: agent }
      const { name } = await world.httpsEdge({
        routes: [{ backend: await world.toBackend('tunnel_group', { labels }) }],
      })
      await open(t, (await http2Upstream(t, service)).address, labels)
      const session = http2Over(await dialled(listenerName(name), { version: '2' }), { name })
      const stream = session.request(
        { ':method': 'POST', ':path': '/a.B/C', 'content-type': 'application/grpc', te: 'trailers' },
        { waitForTrailers: true },
      )
      stream.on('wantTrailers', () => stream.sendTrailers({ 'x-client': 'yes' }))
      const [headers] = (await once(stream, 'response')) as [Record<string, unknown>]
      assert.equal(headers['content-type'], 'application/grpc')
      for (const word of ['one', 'two', 'three']) {
        stream.write(message(word))
        const [chunk] = (await once(stream, 'data')) as [Buffer]
        assert.equal(chunk.toString('latin1', 5), word.toUpperCase())
      }
      const trailers = once(stream, 'trailers')
      stream.end()
      const [{ 'grpc-status': status, 'grpc-message': words, 'x-te': te, 'x-sent': sent }] = await trailers
      assert.deepEqual([status, words, te, sent], ['0', 'done', 'trailers', 'yes'])

      const failed = await world.ask(name, {
        version: '2',
        method: 'POST',
        path: '/unknown',
        body: message('x'),
        headers: { 'content-type': 'application/grpc' },
      })
      assert.deepEqual([failed.status, failed.headers['grpc-status'], failed.body.length], [200, '12', 0])
      session.destroy()
    })
  }

  test('gets a gRPC status when no tunnel is online', async () => {
    const { name } = await world.httpsEdge({
      routes: [{ backend: await world.toBackend('tunnel_group', { labels: { grpc: 'nobody' } }) }],
    })
    const answer = await world.ask(name, {
      version: '2',
      method: 'POST',
      body: message('x'),
      headers: { 'content-type': 'application/grpc' },
    })
    assert.deepEqual([answer.headers['grpc-status'], answer.code], ['14', 'ERR_BACKEND_OFFLINE'])
  })
})

describe('interim answers', () => {
  for (const version of versions) {
    test(`103 reaches a visitor over HTTP/${version} before the answer`, async (t) => {
      const service = await recorder(t, (_, response) => {
        response.writeEarlyHints({ link: ['</a.css>; rel=preload', '</b.js>; rel=preload'] })
        response.end('done')
      })
      const { name } = await world.httpsTo(service)
      const answer = await world.ask(name, { version })
      assert.deepEqual([answer.status, answer.text, answer.interim.length], [200, 'done', 1])
      assert.equal(answer.interim[0]?.status, 103)
      assert.match(String(answer.interim[0]?.headers.link), /a\.css.*b\.js/)
    })

    test(`100 comes before the body over HTTP/${version}, and not when the request is refused`, async (t) => {
      const service = await recorder(t, (request, response) => {
        request.on('data', () => {}).on('end', () => response.end('got it'))
      })
      const { name } = await world.httpsTo(service, { user_agent_filter: { deny: ['bad'] } })
      const headers = { expect: '100-continue', 'content-length': '5' }
      const socket = await dialled(listenerName(name), { version })
      if (version === '2') {
        const session = http2Over(socket, { name })
        const stream = session.request({ ':method': 'POST', 'user-agent': 'x', ...headers })
        await once(stream, 'continue')
        stream.end('hello')
        const [answer] = (await once(stream, 'response')) as [Record<string, unknown>]
        assert.equal(answer[':status'], 200)
        session.destroy()
      } else {
        const lines = ['POST / HTTP/1.1', `Host: ${name}`, 'User-Agent: x', 'Expect: 100-continue', 'Content-Length: 5']
        socket.write(`${lines.join('\r\n')}\r\n\r\n`)
        assert.equal(await readUntil(socket, (text) => text.includes('\r\n\r\n')), 'HTTP/1.1 100 Continue\r\n\r\n')
        socket.write('hello')
        assert.match(await readUntil(socket, (text) => text.endsWith('got it')), /^HTTP\/1\.1 200 /)
      }
      assert.equal(service.last.get('expect'), undefined)
      socket.destroy()

      const refused = await dialled(listenerName(name))
      refused.write(
        `POST / HTTP/1.1\r\nHost: ${name}\r\nUser-Agent: bad\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n`,
      )
      assert.match(await readUntil(refused, (text) => text.includes('ERR_')), /^HTTP\/1\.1 403 /)
      refused.destroy()
    })
  }
})

describe('trailers', () => {
  for (const version of versions) {
    test(`go both ways over HTTP/${version}`, async (t) => {
      let heard: Record<string, string | undefined> = {}
      const service = await recorder(t, (request, response) => {
        request
          .on('data', () => {})
          .on('end', () => {
            heard = { ...request.trailers }
            response.writeHead(200, { trailer: 'x-sum' })
            response.write('body')
            response.addTrailers({ 'x-sum': '42' })
            response.end()
          })
      })
      const { name } = await world.httpsTo(service)
      const trailers = { 'x-check': 'abc', x_under: '1', 'x-forwarded-for': '9.9.9.9' }
      const answer = await world.ask(name, { version, method: 'POST', body: 'some', trailers })
      assert.deepEqual([answer.text, answer.trailers['x-sum']], ['body', '42'])
      assert.deepEqual(heard, { 'x-check': 'abc' })
    })
  }
})

describe('large bodies', () => {
  for (const version of versions) {
    test(`of 8 MB pass up and down unchanged over HTTP/${version}, through an agent`, async (t) => {
      const body = randomBytes(8 * 1024 * 1024)
      const service = await recorder(t, (request, response) => {
        const chunks: Buffer[] = []
        request.on('data', (chunk: Buffer) => chunks.push(chunk))
        request.on('end', () => response.end(Buffer.concat(chunks)))
      })
      const labels = { large: version }
      const { name } = await world.httpsEdge({
        routes: [{ backend: await world.toBackend('tunnel_group', { labels }) }],
      })
      const agent = await ownAgent(t, world)
      await agent.forward({ addr: service.address, labels })
      const answer = await world.ask(name, { version, method: 'PUT', body })
      const hash = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
      assert.equal(hash(answer.body), hash(body))
    })
  }

  test('that the service cuts off arrive as incomplete', async (t) => {
    const service = await tcpUpstream(t, (socket) =>
      socket.once('data', () => {
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf', () => socket.destroy())
      }),
    )
    const { name } = await world.httpsTo(service)
    for (const version of versions) await assert.rejects(world.ask(name, { version }), `over HTTP/${version}`)
  })
})

describe('a TCP edge', () => {
  test('carries bytes in both directions, each until its own end', async (t) => {
    const service = await listener(t, (socket) => {
      socket.on('data', (chunk) => socket.write(chunk.toString('latin1').toUpperCase()))
      socket.on('end', () => socket.end('!'))
    })
    const { port } = await world.tcpEdge({ backend: await world.toAddress(service) })
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    socket.end('hello')
    assert.equal((await readToEnd(socket)).toString(), 'HELLO!')
  })

  test('tells each side when the other has gone', async (t) => {
    const service = await listener(t)
    const { port } = await world.tcpEdge({ backend: await world.toAddress(service) })
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => {})
    socket.write('x')
    await until('the service has it', () => service.received[0]?.length === 1)
    socket.resetAndDestroy()
    await until('the service knows', () => service.sockets[0]?.destroyed)
    const other = connect(port, '127.0.0.1')
    other.on('error', () => {})
    other.write('x')
    await until('the service has it', () => service.received[1]?.length === 1)
    service.sockets[1]?.destroy()
    await readToEnd(other)
  })

  test('without a backend, or with one that cannot be reached, closes', async () => {
    for (const modules of [{}, { backend: await world.toAddress(await nobody()) }]) {
      const { port } = await world.tcpEdge(modules)
      const socket = connect(port, '127.0.0.1')
      socket.on('error', () => {})
      assert.equal((await readToEnd(socket)).length, 0)
    }
  })
})

test('an invalid answer of a service affects only its own request', async (t) => {
  const nonsense = [
    'SSH-2.0-OpenSSH_9.6\r\n',
    'HTTP/2.0 200 OK\r\n\r\n',
    'HTTP/1.1 200 OK\nContent-Length: 0\n\n',
    'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\nabc',
    'HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 0\r\n\r\n',
    'HTTP/1.1 0 Nothing\r\n\r\n',
    `HTTP/1.1 200 OK\r\nX: ${'a'.repeat(70_000)}\r\n\r\n`,
    'HTTP/1.1 100 Continue\r\n\r\n'.repeat(40),
  ]
  let said = ''
  const service = await tcpUpstream(t, (socket) => socket.once('data', () => socket.write(said)))
  const { name } = await world.httpsTo(service)
  for (said of nonsense) {
    for (const version of versions) {
      const { status, code } = await world.ask(name, { version })
      assert.deepEqual([status, code], [502, 'ERR_UPSTREAM_INVALID'], JSON.stringify(said.slice(0, 80)))
    }
  }
  said = 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nwellHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged'
  for (const version of versions) {
    for (let i = 0; i < 3; i++) assert.equal((await world.ask(name, { version })).text, 'well')
  }
  const socket = await dialled(listenerName(name))
  for (let i = 0; i < 3; i++)
    assert.equal((await askHttp1(socket, { name })).text, 'well', 'no answer is left for the next request')
  socket.destroy()
})
