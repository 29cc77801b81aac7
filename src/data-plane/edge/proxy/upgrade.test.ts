import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import type { Socket } from 'node:net'
import { describe, type TestContext, test } from 'node:test'
import type { Phases } from '../../../modules/phases.ts'
import { compileWebsocketTcpConverter } from '../../../modules/websocket_tcp_converter/traffic.ts'
import { ask } from '../testing/http-visitor.ts'
import {
  backendOf,
  httpService,
  offlineTarget,
  Plane,
  rawService,
  type Service,
  testEdge,
} from '../testing/test-http-plane.ts'

/** A service that answers the first request with `answer`, and returns what follows in capitals. */
function shoutingService(t: TestContext, answer: string): Promise<Service> {
  return rawService(t, (socket) => {
    socket.on('error', () => {})
    socket.once('data', () => {
      socket.write(answer)
      socket.on('data', (chunk: Buffer) => socket.write(chunk.toString().toUpperCase()))
      socket.on('end', () => socket.end('bye'))
    })
  })
}

/** Resolves when all connections of a service are closed. */
async function closed({ sockets }: Service): Promise<void> {
  await Promise.all([...sockets].map((socket) => new Promise((resolve) => socket.on('close', resolve))))
}

const switching = (more = ''): string =>
  `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: shout\r\n${more}\r\n`

/** Asks the plain listener to switch; returns the answer, and the connection if it was switched. */
async function upgrade(plane: Plane, headers: Record<string, string> = {}) {
  const to = { port: plane.httpPort, host: '127.0.0.1', agent: false as const }
  const asking = request({
    ...to,
    headers: { host: 'a.test', connection: 'Upgrade', upgrade: 'shout', ...headers },
  })
  asking.end()
  const given = await Promise.race([once(asking, 'upgrade'), once(asking, 'response')])
  const [response, socket, first] = given as [IncomingMessage, Socket | undefined, Buffer | undefined]
  return { response, socket, first }
}

function plainEdge(service: Service, phases: Partial<Record<'response', NonNullable<Phases['response']>[]>> = {}) {
  return testEdge({ names: ['a.test'], kind: 'http', routes: [{ backend: service.backend, ...phases }] })
}

describe('an upgrade', () => {
  test('that a module replaces with an answer does not happen, and ends at the service', async (t) => {
    const service = await shoutingService(t, switching())
    const tea = { respond: { status: 418, headers: [], body: 'tea' } }
    const plane = await Plane.start(t, [plainEdge(service, { response: [async () => tea] })])
    const { response, socket } = await upgrade(plane)
    assert.deepEqual([response.statusCode, socket], [418, undefined])
    response.resume()
    await closed(service)
  })

  test('that the service accepts carries bytes both ways, each with its end', async (t) => {
    const service = await shoutingService(
      t,
      `${switching('Connection: x-private\r\nX-Private: 1\r\nX-Public: 2\r\n')}first`,
    )
    const plane = await Plane.start(t, [plainEdge(service)])
    const { response, socket, first } = await upgrade(plane)
    assert.equal(response.statusCode, 101)
    assert.equal(response.headers.upgrade, 'shout')
    assert.equal(response.headers['x-private'], undefined)
    assert.equal(response.headers['x-public'], '2')
    assert.ok(socket)
    let text = first?.toString() ?? ''
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString()
    })
    socket.end('hello')
    await once(socket, 'end')
    assert.equal(text, 'firstHELLObye')
    const { status, bytesIn, bytesOut, isCut } = await plane.record()
    assert.deepEqual([status, bytesIn, bytesOut, isCut], [101, 5, 13, false])
  })

  test('that the service declines is an answer like any other', async (t) => {
    const service = await httpService(t, (asked, response) => response.end(`asked for ${asked.headers.upgrade}`))
    const plane = await Plane.start(t, [plainEdge(service)])
    const { response, socket } = await upgrade(plane)
    assert.equal(response.statusCode, 200)
    assert.ok(!socket)
    let text = ''
    for await (const chunk of response) text += String(chunk)
    assert.equal(text, 'asked for shout')
  })

  test('that a response phase turns into something else does not happen', async (t) => {
    const service = await shoutingService(t, switching())
    const refuse: Phases['response'] = (incoming) => {
      if (incoming.status === 101) incoming.status = 403
    }
    const plane = await Plane.start(t, [plainEdge(service, { response: [refuse] })])
    const { response } = await upgrade(plane)
    assert.equal(response.statusCode, 403)
    await plane.record()
    await closed(service)
  })

  test('to h2c is not requested, and others with it are', async (t) => {
    const service = await httpService(t, (asked, response) => response.end(String(asked.headers.upgrade)))
    const plane = await Plane.start(t, [plainEdge(service)])
    for (const [asked, seen] of [
      ['h2c', 'undefined'],
      ['H2C, shout', 'shout'],
    ] as const) {
      const { response } = await upgrade(plane, { upgrade: asked })
      let text = ''
      for await (const chunk of response) text += String(chunk)
      assert.equal(text, seen)
    }
  })

  test('whose visitor resets closes the connection to the service', async (t) => {
    const service = await shoutingService(t, switching())
    const plane = await Plane.start(t, [plainEdge(service)])
    const { socket } = await upgrade(plane)
    const gone = closed(service)
    socket?.resetAndDestroy()
    await gone
    assert.equal((await plane.record()).isCut, true)
  })

  test('on which nothing moves for too long ends', async (t) => {
    const service = await shoutingService(t, switching())
    const plane = await Plane.start(t, [plainEdge(service)], { idleMs: 50 })
    const { socket } = await upgrade(plane)
    assert.ok(socket)
    await once(socket, 'close').catch(() => {})
    assert.equal((await plane.record()).isCut, true)
  })
})

describe('a route that turns WebSocket into bytes', () => {
  const bridged = (backend: Service['backend']) => {
    const { request: asked, bridge } = compileWebsocketTcpConverter()
    return testEdge({
      names: ['localhost', 'a.test'],
      kind: 'http',
      routes: [{ backend, request: asked ? [asked] : [], bridge }],
    })
  }

  test('connects a real client with a service of raw bytes', async (t) => {
    const service = await rawService(t, (socket) => socket.on('error', () => {}).pipe(socket))
    const plane = await Plane.start(t, [bridged(service.backend)])
    const client = new WebSocket(`ws://localhost:${plane.httpPort}/x`, ['binary', 'other'])
    client.binaryType = 'arraybuffer'
    await once(client, 'open')
    assert.equal(client.protocol, 'binary')
    client.send(Buffer.from('hello'))
    const [{ data }] = (await once(client, 'message')) as [MessageEvent]
    assert.equal(Buffer.from(data as ArrayBuffer).toString(), 'hello')
    client.close()
    await once(client, 'close')
    const { status, bytesIn, bytesOut, target } = await plane.record()
    assert.deepEqual([status, bytesIn, bytesOut, target], [101, 5, 5, service.target.key])
  })

  test('answers the handshake correctly', async (t) => {
    const service = await rawService(t, (socket) => socket.on('error', () => {}).resume())
    const plane = await Plane.start(t, [bridged(service.backend)])
    const key = 'dGhlIHNhbXBsZSBub25jZQ=='
    const headers = { upgrade: 'websocket', 'sec-websocket-key': key, 'sec-websocket-version': '13' }
    const { response, socket } = await upgrade(plane, headers)
    assert.equal(response.statusCode, 101)
    // RFC 6455 §1.3
    assert.equal(response.headers['sec-websocket-accept'], 's3pPLMBiTxaQ9kYGzzhZRbK+xOo=')
    assert.equal(
      response.headers['sec-websocket-accept'],
      createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64'),
    )
    assert.equal(response.headers['sec-websocket-protocol'], undefined)
    socket?.destroy()
  })

  test('refuses all else, and refuses before the switch when the service is offline', async (t) => {
    const plane = await Plane.start(t, [bridged(backendOf(offlineTarget('refused')))])
    const headers = {
      upgrade: 'websocket',
      'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
      'sec-websocket-version': '13',
    }
    const cases: [headers: Record<string, string>, status: number][] = [
      [headers, 502],
      [{ ...headers, upgrade: 'shout' }, 400],
      [{ ...headers, 'sec-websocket-key': 'short' }, 400],
      [{ ...headers, 'sec-websocket-version': '8' }, 400],
    ]
    for (const [given, status] of cases)
      assert.equal((await upgrade(plane, given)).response.statusCode, status, JSON.stringify(given))
  })

  test('refuses requests of HTTP/2 that open no WebSocket', async (t) => {
    const service = await rawService(t, (socket) => socket.on('error', () => {}).resume())
    const { request: asked, bridge } = compileWebsocketTcpConverter()
    const routes = [{ backend: service.backend, request: asked ? [asked] : [], bridge }]
    const plane = await Plane.start(t, [testEdge({ names: ['a.test'], routes })])
    assert.equal((await ask(t, plane, '2')).status, 400)
    assert.equal(service.dials, 0)
  })
})
