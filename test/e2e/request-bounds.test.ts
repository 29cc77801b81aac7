/** Configurable limits on requests: size and number of headers, and timeouts. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { listener } from './edges/upstreams.ts'
import {
  type Ask,
  ask,
  dialled,
  type EdgeEntry,
  type HttpVersion,
  http2Over,
  readToEnd,
  versions,
} from './edges/visitor.ts'
import { type HttpsEdge, World } from './edges/world.ts'

interface Served {
  readonly world: World
  /** Heads that reached the service; Node's own server would refuse them. */
  readonly heads: string[]
  readonly edge: HttpsEdge
  readonly listenerName: EdgeEntry
}

async function serve(flags: Record<string, string>): Promise<Served> {
  const world = await World.start({ flags })
  const heads: string[] = []
  const service = await listener(world, (socket) => {
    let text = ''
    socket.on('data', (bytes: Buffer) => {
      text += bytes.toString('latin1')
      if (!text.endsWith('\r\n\r\n')) return
      heads.push(text)
      text = ''
      socket.write('HTTP/1.1 204 No Content\r\n\r\n')
    })
  })
  const edge = await world.httpsTo(service)
  return {
    world,
    heads,
    edge,
    listenerName: { name: edge.name, port: world.platform.httpsPort, ca: world.platform.ca },
  }
}

/** As many headers with this many bytes in all, each below the limit for one header over HTTP/2. */
function headers({ bytes = 0, count = 1 }): NonNullable<Ask['headers']> {
  const each = 'x'.repeat(Math.floor(bytes / count))
  return Object.fromEntries(Array.from({ length: count }, (_, i) => [`x-${i}`, each]))
}

describe('with the default limits', () => {
  let served: Served
  before(async () => {
    served = await serve({})
  })
  after(() => served.world.stop())

  for (const version of versions) {
    test(`60 KB of headers pass over HTTP/${version}, 70 KB do not, nor do 120 headers`, async () => {
      const { listenerName } = served
      assert.equal(await outcome(listenerName, version, headers({ bytes: 60_000, count: 4 })), 'passed')
      assert.equal(await outcome(listenerName, version, headers({ bytes: 70_000, count: 4 })), 'refused')
      assert.equal(await outcome(listenerName, version, headers({ count: 120 })), 'refused')
    })
  }
})

describe('with raised limits', () => {
  let served: Served
  before(async () => {
    served = await serve({ 'max-header-bytes': '131072', 'max-headers': '300', 'idle-timeout': '1h' })
  })
  after(() => served.world.stop())

  for (const version of versions) {
    test(`120 KB of headers reach the service over HTTP/${version}, and so do 250 headers`, async () => {
      const { listenerName, heads } = served
      assert.equal(await outcome(listenerName, version, headers({ bytes: 120_000, count: 4 })), 'passed')
      assert.ok((heads.at(-1)?.length ?? 0) > 120_000)
      assert.equal(await outcome(listenerName, version, headers({ count: 250 })), 'passed')
      assert.match(heads.at(-1) ?? '', /\r\nx-249:/)
      assert.equal(await outcome(listenerName, version, headers({ bytes: 140_000, count: 5 })), 'refused')
      assert.equal(await outcome(listenerName, version, headers({ count: 320 })), 'refused')
    })
  }
})

describe('with short timeouts', () => {
  let served: Served
  before(async () => {
    served = await serve({ 'header-timeout': '1s', 'idle-timeout': '1s' })
  })
  after(() => served.world.stop())

  test('an incomplete head is answered 408 after the configured time', async () => {
    const socket = await dialled(served.listenerName)
    socket.write(`GET / HTTP/1.1\r\nHost: ${served.edge.name}\r\nX:`)
    assert.match((await readToEnd(socket)).toString(), /^HTTP\/1\.1 408 /)
  })

  test('an idle connection is closed, over HTTP/1.1, HTTP/2 and TCP', async () => {
    const { world, listenerName } = served
    const silent = await listener(world, () => {})
    const tcp = await world.tcpEdge({ backend: await world.toAddress(silent) })
    const stream = connect({ port: tcp.port, host: '127.0.0.1' })
    const session = http2Over(await dialled(listenerName, { version: '2' }), listenerName)
    const kept = await dialled(listenerName)
    kept.resume()
    const closed = new Promise((resolve) => stream.on('error', () => {}).once('close', resolve))
    await Promise.all([closed, once(session, 'close'), once(kept, 'end')])
    kept.destroy()
  })

  test('a service may take longer to answer than a connection may be idle', async () => {
    const { world } = served
    const held: Socket[] = []
    const slow = await listener(world, (socket) => held.push(socket))
    const edge = await world.httpsTo(slow)
    const idle = await dialled(served.listenerName)
    idle.resume()
    const answer = ask({ ...served.listenerName, name: edge.name })
    // When this one has been idle for too long, the other has waited as long.
    await once(idle, 'end')
    idle.destroy()
    assert.equal(held.length, 1)
    held[0]?.end('HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n')
    assert.equal((await answer).status, 204)
  })
})

async function outcome(listenerName: EdgeEntry, version: HttpVersion, headers: NonNullable<Ask['headers']>) {
  if (version === '1.1') {
    const { status, code } = await ask(listenerName, { headers })
    if (code === 'ERR_REQUEST_HEAD_TOO_LARGE') return 'refused'
    return status === 204 ? 'passed' : status
  }
  // By default Node's client sends 64 KiB at most.
  const socket = await dialled(listenerName, { version })
  const session = connectHttp2(`https://${listenerName.name}`, {
    createConnection: () => socket,
    maxSendHeaderBlockLength: 1e6,
  })
  session.on('error', () => {})
  try {
    const stream = session.request({ ':path': '/', ...headers })
    const [{ ':status': status }] = (await once(stream, 'response')) as [{ ':status': number }]
    return status === 204 ? 'passed' : status === 431 ? 'refused' : status
  } catch (error) {
    // Once the library knows our settings, it refuses by itself.
    return /NGHTTP2_ENHANCE_YOUR_CALM/.test(String(error)) ? 'refused' : String(error)
  } finally {
    session.destroy()
  }
}
