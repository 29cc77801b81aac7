/** D68: at a cap new connections and requests get a clear refusal, and open connections are not affected. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect as connectTcp, type Socket } from 'node:net'
import { describe, type TestContext, test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { type Platform, type PlatformOptions, startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'
import { listener, recorder } from './edges/upstreams.ts'
import { ask, askHttp1, askHttp2, dial, dialled, http2Over, readToEnd } from './edges/visitor.ts'
import { type HttpsEdge, World } from './edges/world.ts'

const HOP = '127.0.0.2'

async function start(t: TestContext, flags: NonNullable<PlatformOptions['flags']>): Promise<World> {
  // One plane: several learn each other's counts a moment later, and the caps here are exact.
  const world = await World.start({ flags: { 'log-level': 'warn', ...flags }, planeCount: 1 })
  t.after(() => world.stop())
  return world
}

const portOf = (address: string): number => Number(address.slice(address.lastIndexOf(':') + 1))

function open(t: TestContext, port: number, from = '127.0.0.1'): Socket {
  const socket = connectTcp({ port, host: '127.0.0.1', localAddress: from })
  socket.on('error', () => {})
  t.after(() => socket.destroy())
  return socket
}

/** Reads until the server closes. */
async function heard(socket: Socket, words = ''): Promise<string> {
  if (words !== '') socket.write(words)
  return (await readToEnd(socket)).toString('latin1')
}

function listenerOf(world: World, { name }: Pick<HttpsEdge, 'name'>) {
  return { name, port: world.platform.httpsPort, ca: world.platform.ca }
}

async function metric(platform: Platform, listenerName: string, setting: string): Promise<number> {
  const text = await (await fetch(platform.metricsUrl)).text()
  const line = text
    .split('\n')
    .find((each) => each.startsWith(`postern_cap_refusals_total{door="${listenerName}",setting="${setting}"}`))
  return Number(line?.split(' ').at(-1))
}

/** Lines about caps. */
function reported(world: World): { door: string; setting: string; limit: number; peer: string }[] {
  return world.platform.log.filter((line) => line.includes('"refused at a cap"')).map((line) => JSON.parse(line))
}

const get = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'

describe('--max-connections', () => {
  test('over it, visitors are closed or get 503 with Retry-After, and open connections keep working', async (t) => {
    const world = await start(t, { 'max-connections': '5' })
    const edge = await world.httpsTo(await recorder(world))
    const echo = await listener(world, (socket) => socket.pipe(socket))
    const tcp = await world.tcpEdge({ backend: await world.toAddress(echo) })
    const kept = await dialled(listenerOf(world, edge))
    t.after(() => kept.destroy())
    const stream = open(t, tcp.port)
    stream.write('one')
    await once(stream, 'data')
    const idle = [1, 2, 3].map(() => open(t, world.platform.httpPort))
    await Promise.all(idle.map((socket) => once(socket, 'connect')))
    await until('all are counted', async () =>
      /postern_connections_open\{door="visitors"\} 5/.test(await metrics(world)),
    )

    const plain = await heard(open(t, world.platform.httpPort), get)
    assert.match(plain, /^HTTP\/1\.1 503 .*\r\nretry-after: 1\r\n.*ERR_SERVER_BUSY/s)
    assert.equal(await heard(open(t, tcp.port), 'hello'), '')
    const refused = dial(listenerOf(world, edge))
    refused.on('error', () => {})
    assert.equal((await readToEnd(refused)).length, 0)

    // Connections that were open still work.
    assert.equal((await askHttp1(kept, edge)).status, 200)
    stream.write('two')
    assert.equal(String((await once(stream, 'data'))[0]), 'two')
    // The other doors have their own caps.
    assert.equal((await world.api.get('/edges/https')).https_edges.length, 2)

    // There is room again.
    idle[0]?.destroy()
    await until('there is room', async () => /postern_connections_open\{door="visitors"\} 4/.test(await metrics(world)))
    const again = open(t, world.platform.httpPort)
    again.write(`GET / HTTP/1.1\r\nHost: ${edge.name}\r\n\r\n`)
    assert.match(String((await once(again, 'data'))[0]), /^HTTP\/1\.1 307 /)

    assert.equal(await metric(world.platform, 'visitors', 'max-connections'), 3)
    const lines = reported(world)
    assert.deepEqual(
      lines.map(({ door, setting, limit }) => [door, setting, limit]),
      [['visitors', '--max-connections', 5]],
    )
  })

  test('over it, the API answers 503 with Retry-After, but still answers probes', async (t) => {
    const world = await start(t, { 'max-connections': '20' })
    const port = portOf(new URL(world.platform.url).host)
    const idle = Array.from({ length: 20 }, () => open(t, port))
    await until('the cap is met', async () => {
      const text = await metrics(world)
      return Number(/postern_connections_open\{door="api"\} (\d+)/.exec(text)?.[1]) >= 20
    })
    const text = await heard(open(t, port), get.replace('/ ', '/edges/https '))
    assert.match(text, /^HTTP\/1\.1 503 /)
    assert.match(text, /retry-after: 1\r\n/i)
    assert.match(text, /"error_code":"ERR_SERVER_BUSY","status_code":503/)
    const probe = open(t, port)
    probe.write(get.replace('/ ', '/healthz '))
    assert.match(String((await once(probe, 'data'))[0]), /^HTTP\/1\.1 200 /)
    assert.equal(await heard(open(t, port)), '', 'a silent connection is closed')
    for (const socket of idle) socket.destroy()
    assert.ok(!world.platform.log.some((line) => line.includes('"level":"error"')))
  })
})

describe('--max-connections-per-source', () => {
  test('a source over it is refused at every door, while others come in', async (t) => {
    const world = await start(t, { 'max-connections-per-source': '3' })
    const edge = await world.httpsTo(await recorder(world))
    for (const [port, from] of [
      [world.platform.httpPort, '127.0.0.5'],
      [portOf(world.platform.agents), '127.0.0.6'],
    ] as const) {
      const idle = [1, 2, 3].map(() => open(t, port, from))
      await Promise.all(idle.map((socket) => once(socket, 'connect')))
      const text = await heard(open(t, port, from), get)
      assert.match(text, port === world.platform.httpPort ? /^HTTP\/1\.1 503 / : /^$/)
      assert.ok(idle.every((socket) => !socket.closed))
    }
    assert.equal((await ask(listenerOf(world, edge), { from: '127.0.0.7' })).status, 200)
    assert.deepEqual(
      reported(world).map(({ door, peer }) => [door, peer]),
      [
        ['visitors', '127.0.0.5'],
        ['agents', '127.0.0.6'],
      ],
    )
  })

  test('behind a trusted proxy the address in the PROXY header counts', async (t) => {
    const world = await start(t, { 'max-connections-per-source': '2', 'trusted-proxies': `${HOP}/32` })
    const arrive = (ip: string): Socket => {
      const socket = open(t, world.platform.httpPort, HOP)
      socket.write(`PROXY TCP4 ${ip} 127.0.0.1 4000 80\r\n`)
      return socket
    }
    const first = [arrive('198.51.100.1'), arrive('198.51.100.1')]
    for (const socket of first) {
      socket.write(get)
      await once(socket, 'data')
    }
    assert.match(await heard(arrive('198.51.100.1'), get), /^HTTP\/1\.1 503 /)
    const other = arrive('198.51.100.2')
    other.write(get)
    assert.match(String((await once(other, 'data'))[0]), /^HTTP\/1\.1 404 /)
  })
})

describe('--max-requests-per-source', () => {
  for (const version of ['1.1', '2'] as const) {
    test(`over HTTP/${version} a request over the rate gets 503 with Retry-After, and the connection stays open`, async (t) => {
      const world = await start(t, { 'max-requests-per-source': '5' })
      const web = await recorder(world)
      const edge = await world.httpsTo(web)
      const listenerName = listenerOf(world, edge)
      const from = '127.0.0.8'
      const socket = await dialled(listenerName, {
        from,
        tls: { ALPNProtocols: [version === '2' ? 'h2' : 'http/1.1'] },
      })
      t.after(() => socket.destroy())
      const session = version === '2' ? http2Over(socket, listenerName) : undefined
      const once = () => (session ? askHttp2(session, listenerName) : askHttp1(socket, listenerName))
      const answers: Awaited<ReturnType<typeof ask>>[] = []
      while (answers.at(-1)?.status !== 503 && answers.length < 1000) answers.push(await once())
      const refused = answers.at(-1)
      assert.deepEqual([refused?.status, refused?.code], [503, 'ERR_SERVER_BUSY'])
      assert.equal(refused?.headers['retry-after'], '1')
      assert.ok(answers.length > 10, 'twice the rate passes at once')
      assert.equal(web.seen.length, answers.length - 1)
      // The same source on another connection is refused too, another source is not.
      const others = await Promise.all(Array.from({ length: 12 }, () => ask(listenerName, { from })))
      assert.ok(others.some(({ status }) => status === 503))
      assert.equal((await ask(listenerName, { from: '127.0.0.9' })).status, 200)
      await until('its rate lets one pass again', async () => (await once()).status === 200)
      assert.equal(reported(world).length, 1)
      session?.destroy()
    })
  }

  test('applies to the API too, and is not logged as an error', async (t) => {
    const platform = await startPlatform({ flags: { 'log-level': 'warn', 'max-requests-per-source': '1' } })
    t.after(() => platform.stop())
    const call = () => fetch(`${platform.url}/edges/https`)
    const statuses = (await Promise.all(Array.from({ length: 100 }, call))).map(({ status }) => status)
    assert.deepEqual(new Set(statuses), new Set([401, 503]))
    assert.ok((await metric(platform, 'api', 'max-requests-per-source')) > 0)
    assert.ok(!platform.log.some((line) => line.includes('"level":"error"')))
  })

  test('the API does not limit a trusted proxy, which may carry all clients', async (t) => {
    const flags = {
      'max-requests-per-source': '1',
      'max-connections-per-source': '1',
      'trusted-proxies': '127.0.0.1/32',
    }
    const platform = await startPlatform({ flags })
    t.after(() => platform.stop())
    const call = () => fetch(`${platform.url}/edges/https`)
    const statuses = (await Promise.all(Array.from({ length: 30 }, call))).map(({ status }) => status)
    assert.deepEqual(new Set(statuses), new Set([401]))
  })

  test('a connection to the API stays open after a refused request', async (t) => {
    const platform = await startPlatform({ flags: { 'max-requests-per-source': '1', 'drain-timeout': '1s' } })
    t.after(() => platform.stop())
    const socket = open(t, portOf(new URL(platform.url).host), '127.0.0.30')
    let text = ''
    socket.on('data', (bytes: Buffer) => {
      text += bytes.toString('latin1')
    })
    socket.write(get.repeat(5))
    await until('one is refused', () => text.includes('HTTP/1.1 503 '))
    await until('one is served again', () => {
      socket.write(get)
      return text.slice(text.indexOf('HTTP/1.1 503 ')).includes('HTTP/1.1 401 ')
    })
    assert.equal(socket.closed, false)
  })
})

describe('--max-handshakes', () => {
  for (const setting of ['max-handshakes', 'max-handshakes-per-source'] as const) {
    test(`${setting}: a handshake over the cap is closed before it costs anything, and open connections keep working`, async (t) => {
      // Enough for the visits with which the world checks that its edges are in force.
      const world = await start(t, { [setting]: '20' })
      const edge = await world.httpsTo(await recorder(world))
      const listenerName = listenerOf(world, edge)
      const kept = await dialled(listenerName, { from: '127.0.0.20' })
      t.after(() => kept.destroy())
      const from = '127.0.0.21'
      const tryOnce = (port: number): Promise<boolean> =>
        new Promise((resolve) => {
          const below = connectTcp({ port, host: '127.0.0.1', localAddress: from })
          const socket = connectTls({ socket: below, servername: edge.name, rejectUnauthorized: false })
          socket.on('error', () => resolve(false))
          socket.on('close', () => resolve(false))
          socket.once('secureConnect', () => {
            resolve(true)
            socket.destroy()
          })
        })
      for (const [port, who] of [
        [listenerName.port, 'visitors'],
        [portOf(world.platform.agents), 'agents'],
      ] as const) {
        const outcomes = await Promise.all(Array.from({ length: 150 }, () => tryOnce(port)))
        assert.ok(outcomes.includes(true))
        assert.ok(outcomes.includes(false))
        assert.ok((await metric(world.platform, who, setting)) > 0)
      }
      assert.equal((await askHttp1(kept, edge)).status, 200)
      if (setting === 'max-handshakes-per-source') {
        assert.equal((await ask(listenerName, { from: '127.0.0.22' })).status, 200)
      }
      await until('handshakes pass again', () => tryOnce(listenerName.port))
    })
  }
})

async function metrics(world: World): Promise<string> {
  return (await fetch(world.platform.metricsUrl)).text()
}
