/** WebSockets and other upgrades through an edge, and the module that turns WebSockets into plain bytes. */
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { after, before, describe, type TestContext, test } from 'node:test'
import { clientFrame } from '../../src/modules/websocket_tcp_converter/testing/test-client.ts'
import { until } from '../support/until.ts'
import { nobody } from '../support/upstream.ts'
import { ownAgent } from './edges/agents.ts'
import { parseRequests, valuesOf } from './edges/strict-http.ts'
import { listener } from './edges/upstreams.ts'
import { dialled, type EdgeEntry, http2Over, readToEnd, readUntil, versions } from './edges/visitor.ts'
import { type HttpsEdge, World } from './edges/world.ts'

let world: World
before(async () => {
  world = await World.start()
})
after(() => world.stop())

const listenerName = (name: string): EdgeEntry => ({ name, port: world.platform.httpsPort, ca: world.platform.ca })

describe('an upgrade', () => {
  const head = (name: string, more = '') =>
    `GET /ws HTTP/1.1\r\nHost: ${name}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${more}\r\n`

  /** Speaks its own protocol after a 101, or answers something else. */
  const switching = (t: Parameters<typeof listener>[0], answer: string) =>
    listener(t, (socket) => {
      let hasAnswered = false
      let received = ''
      socket.on('data', (chunk) => {
        received += chunk.toString('latin1')
        if (hasAnswered) {
          if (answer.startsWith('HTTP/1.1 101')) socket.write(chunk.toString('latin1').toUpperCase())
          return
        }
        const at = received.indexOf('\r\n\r\n')
        if (at < 0) return
        hasAnswered = true
        socket.write(answer)
        if (answer.startsWith('HTTP/1.1 101')) socket.write(received.slice(at + 4).toUpperCase())
      })
      socket.on('end', () => socket.end('bye'))
    })

  const ACCEPTED =
    'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-A: b\r\n\r\nearly '

  test('that the service accepts joins both sides, with early bytes, until each side ends', async (t) => {
    const service = await switching(t, ACCEPTED)
    const { name } = await world.httpsTo(service, { response_headers: { add: { 'x-c': 'd' } } })
    const socket = await dialled(listenerName(name))
    socket.allowHalfOpen = true
    socket.write(`${head(name, 'Sec-WebSocket-Protocol: chat\r\n')}at once `)
    const text = await readUntil(socket, (each) => each.endsWith('AT ONCE '))
    assert.match(text, /^HTTP\/1\.1 101 /)
    assert.match(text, /\r\nUpgrade: websocket\r\n/i)
    assert.match(text, /\r\nX-A: b\r\n/i)
    assert.match(text, /\r\nx-c: d\r\n/i)
    assert.match(text, /\r\n\r\nearly AT ONCE $/)
    socket.write('more')
    assert.equal(await readUntil(socket, (each) => each.length >= 4), 'MORE')
    socket.end()
    assert.equal((await readToEnd(socket)).toString(), 'bye')
    const { messages } = parseRequests(service.received[0] ?? Buffer.alloc(0))
    const [request] = messages
    assert.ok(request)
    assert.deepEqual(valuesOf(request.fields, 'upgrade'), ['websocket'])
    assert.deepEqual(valuesOf(request.fields, 'connection'), ['Upgrade'])
    assert.deepEqual(valuesOf(request.fields, 'sec-websocket-protocol'), ['chat'])
  })

  test('works through an agent too', async (t) => {
    const service = await switching(t, ACCEPTED)
    const { name } = await world.httpsEdge({
      routes: [{ backend: await world.toBackend('tunnel_group', { labels: { ws: '1' } }) }],
    })
    const agent = await ownAgent(t, world)
    await agent.forward({ addr: service.address, labels: { ws: '1' } })
    const socket = await dialled(listenerName(name))
    socket.write(`${head(name)}hello`)
    await readUntil(socket, (text) => text.endsWith('early HELLO'))
    socket.destroy()
    await until('the service knows', () => service.sockets[0]?.destroyed || service.sockets[0]?.readableEnded)
  })

  /** Opens a WebSocket over HTTP/2; the stream when it is open. */
  async function overHttp2(t: TestContext, name: string) {
    const session = http2Over(await dialled(listenerName(name), { version: '2' }), { name })
    t.after(() => session.destroy())
    await once(session, 'remoteSettings')
    assert.equal(session.remoteSettings.enableConnectProtocol, true)
    const path = { ':method': 'CONNECT', ':protocol': 'websocket', ':scheme': 'https', ':path': '/ws' }
    const stream = session.request({ ...path, ':authority': name, 'sec-websocket-version': '13' })
    stream.on('error', () => {}).setEncoding('latin1')
    const [headers] = (await once(stream, 'response')) as [Record<string, unknown>]
    assert.deepEqual([headers[':status'], headers['sec-websocket-accept']], [200, undefined])
    return stream
  }

  /** Answers frames with frames: each payload in capitals. */
  const webSocketService = (t: TestContext) =>
    listener(t, (socket) => {
      let head = ''
      socket.on('data', (chunk) => {
        if (head !== '') {
          const [mask, payload] = [chunk.subarray(2, 6), chunk.subarray(6)]
          const text = Buffer.from(payload.map((byte, i) => byte ^ (mask[i & 3] ?? 0))).toString()
          socket.write(Buffer.concat([Buffer.from([0x81, text.length]), Buffer.from(text.toUpperCase())]))
          return
        }
        head = chunk.toString('latin1')
        const key = /sec-websocket-key: (.*)\r\n/i.exec(head)?.[1] ?? ''
        const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
        const lines = ['HTTP/1.1 101 Switching Protocols', 'Connection: Upgrade', 'Upgrade: websocket']
        socket.write(`${[...lines, `Sec-WebSocket-Accept: ${accept}`].join('\r\n')}\r\n\r\n`)
      })
      socket.on('end', () => socket.end())
    })

  for (const through of ['an address', 'an agent']) {
    test(`works over HTTP/2, with a service behind ${through}`, async (t) => {
      const service = await webSocketService(t)
      const labels = { wsh2: '1' }
      const backend =
        through === 'an agent'
          ? await world.toBackend('tunnel_group', { labels })
          : await world.toBackend('static', { address: service.address, tls: { enabled: false } })
      const { name } = await world.httpsEdge({ routes: [{ backend }] })
      if (through === 'an agent') await (await ownAgent(t, world)).forward({ addr: service.address, labels })
      const stream = await overHttp2(t, name)
      for (const word of ['hello', 'again']) {
        stream.write(clientFrame('text', Buffer.from(word)))
        const [frame] = (await once(stream, 'data')) as [string]
        assert.equal(frame, `\x81\x05${word.toUpperCase()}`)
      }
      stream.end()
      await once(stream, 'close')
      assert.equal(stream.rstCode, 0)
    })
  }

  test('that the service refuses is answered normally, and no raw bytes pass', async (t) => {
    const service = await switching(t, 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno')
    const { name } = await world.httpsTo(service)
    const socket = await dialled(listenerName(name))
    socket.write(`${head(name)}GET /smuggled HTTP/1.1\r\nHost: evil\r\n\r\nraw bytes`)
    const text = await readUntil(socket, (each) => each.includes('ERR_'))
    assert.match(text, /^HTTP\/1\.1 200 [\s\S]*\r\n\r\nnoHTTP\/1\.1 404 /, 'what follows is a separate request')
    const reached = Buffer.concat(service.received).toString('latin1')
    assert.doesNotMatch(reached, /smuggled|raw bytes/)
    socket.destroy()
  })

  test('that the visitor did not ask for is an invalid answer', async (t) => {
    const service = await switching(t, ACCEPTED)
    const { name } = await world.httpsTo(service)
    for (const version of versions) {
      const { status, code } = await world.ask(name, { version })
      assert.deepEqual([status, code], [502, 'ERR_UPSTREAM_INVALID'])
    }
    const h2c = { connection: 'Upgrade, HTTP2-Settings', upgrade: 'h2c', 'http2-settings': 'AAMAAABkAARAAAAAAAIAAAAA' }
    assert.equal((await world.ask(name, { headers: h2c })).code, 'ERR_UPSTREAM_INVALID')
    const reached = Buffer.concat(service.received).toString('latin1')
    assert.doesNotMatch(reached, /upgrade|http2-settings/i)
  })

  test('with a body is refused', async (t) => {
    const service = await switching(t, ACCEPTED)
    const { name } = await world.httpsTo(service)
    const upgrade = { connection: 'upgrade', upgrade: 'websocket' }
    const { status, code } = await world.ask(name, { method: 'POST', headers: upgrade, body: 'x' })
    assert.deepEqual([status, code], [400, 'ERR_BAD_VISITOR_REQUEST'])
    assert.equal(service.sockets.length, 0)
  })
})

describe('the WebSocket converter', () => {
  let edge: HttpsEdge
  let bytes: Awaited<ReturnType<typeof listener>>
  before(async () => {
    bytes = await listener(world, (socket) => {
      socket.on('data', (chunk) => socket.write(chunk.toString('latin1').toUpperCase()))
      socket.on('end', () => socket.end('bye'))
    })
    edge = await world.httpsTo(bytes, { websocket_tcp_converter: {} })
  })

  const key = randomBytes(16).toString('base64')
  const handshake = (name: string) =>
    `GET / HTTP/1.1\r\nHost: ${name}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: ${key}\r\nSec-WebSocket-Version: 13\r\n\r\n`

  /** The payloads of unmasked frames, by opcode. */
  function frames(raw: Buffer): { opcode: number; payload: string }[] {
    const found: { opcode: number; payload: string }[] = []
    for (let at = 0; at + 2 <= raw.length; ) {
      const size = (raw[at + 1] ?? 0) & 0x7f
      assert.ok(size < 126, 'short frames alone')
      found.push({ opcode: (raw[at] ?? 0) & 0x0f, payload: raw.toString('latin1', at + 2, at + 2 + size) })
      at += 2 + size
    }
    return found
  }

  test('turns messages into bytes, and bytes into messages', async () => {
    const socket = await dialled(listenerName(edge.name))
    const chunks: Buffer[] = []
    socket.on('data', (chunk: Buffer) => chunks.push(chunk))
    socket.write(handshake(edge.name))
    const all = () => Buffer.concat(chunks)
    const end = await until('the handshake', () => {
      const at = all().indexOf('\r\n\r\n')
      return at > 0 && at + 4
    })
    const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
    const head = all().toString('latin1', 0, end)
    assert.match(head, /^HTTP\/1.1 101 /)
    assert.equal(/^sec-websocket-accept: (.*)\r$/im.exec(head)?.[1], accept)
    const got = () => frames(all().subarray(end))
    const text = () =>
      got()
        .filter(({ opcode }) => opcode < 3)
        .map(({ payload }) => payload)
        .join('')
    socket.write(clientFrame('binary', Buffer.from('hel'), { isFinal: false }))
    socket.write(clientFrame('ping', Buffer.from('?')))
    socket.write(clientFrame('continuation', Buffer.from('lo ')))
    socket.write(clientFrame('text', Buffer.from('there')))
    await until('all of it came back', () => text() === 'HELLO THERE')
    assert.ok(
      got().some(({ opcode, payload }) => opcode === 10 && payload === '?'),
      'the edge answers a ping',
    )
    socket.write(clientFrame('close', Buffer.from([3, 232])))
    await until('the other end closes as well', () => got().some(({ opcode }) => opcode === 8))
    assert.equal(bytes.received[0]?.toString(), 'hello there')
    socket.destroy()
  })

  test('accepts only WebSocket handshakes', async () => {
    const service = await listener(world)
    const { name } = await world.httpsTo(service, { websocket_tcp_converter: {} })
    for (const version of versions) {
      const { status, code } = await world.ask(name, { version })
      assert.deepEqual([status, code], [400, 'ERR_WEBSOCKET_REQUIRED'])
    }
    const almost = {
      connection: 'upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': 'short',
    }
    assert.equal((await world.ask(name, { headers: almost })).code, 'ERR_WEBSOCKET_REQUIRED')
    assert.equal(service.sockets.length, 0)
  })

  test('reports an unreachable backend before it switches protocols', async () => {
    const { name } = await world.httpsTo(await nobody(), { websocket_tcp_converter: {} })
    const socket = await dialled(listenerName(name))
    socket.write(handshake(name))
    assert.match(
      await readUntil(socket, (text) => text.includes('ERR_')),
      /^HTTP\/1\.1 502 [\s\S]*ERR_UPSTREAM_UNREACHABLE/,
    )
    socket.destroy()
  })
})
