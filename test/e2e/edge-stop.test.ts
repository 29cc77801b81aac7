/** Shutdown: no new visitors, and open requests and streams may finish within the drain time. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { describe, type TestContext, test } from 'node:test'
import { visitsOfAll } from '../support/test-workers.ts'
import { until } from '../support/until.ts'
import { ownAgent } from './edges/agents.ts'
import { isAlive, listener, type Recorder, recorder, shouts, timeout } from './edges/upstreams.ts'
import { type Answer, askHttp1, askHttp2, dialled, type EdgeEntry, http2Over, versions } from './edges/visitor.ts'
import { MARK, World } from './edges/world.ts'

/** For tests that wait until the drain time is over. */
const DRAIN_MS = 2000
/** For tests that must not reach the end of the drain time, even on a busy machine. */
const LONG_DRAIN_MS = 20_000

/** A world for one test, which stops it itself. */
const start = (drainMs = DRAIN_MS) => World.start({ flags: { 'drain-timeout': `${drainMs}ms` } })

const listenerOf = (world: World, name: string): EdgeEntry => ({
  name,
  port: world.platform.httpsPort,
  ca: world.platform.ca,
})

/** A service that ends its answers on `finish`. */
async function patient(t: TestContext): Promise<Recorder & { finish(): void }> {
  const finished = Promise.withResolvers<void>()
  const service = await recorder(t, (request, response) => {
    response.write('first ')
    request.resume()
    // A request may still be arriving on `finish`.
    request.on('end', () => void finished.promise.then(() => response.end('last')))
  })
  return Object.assign(service, { finish: finished.resolve })
}

describe('a shutdown', () => {
  for (const way of ['an address', 'an agent']) {
    test(`lets every answer under way finish, through ${way}, and takes no longer`, async (t) => {
      const world = await start(LONG_DRAIN_MS)
      const service = await patient(t)
      const labels = { stop: '1' }
      const backend =
        way === 'an agent' ? await world.toBackend('tunnel_group', { labels }) : await world.toAddress(service)
      if (way === 'an agent') await (await ownAgent(t, world)).forward({ addr: service.address, labels })
      const { name } = await world.httpsEdge({ routes: [{ backend }] })
      const asked = Array.from({ length: 40 }, (_, i) =>
        world.ask(name, {
          version: versions[i % 2] ?? '2',
          ...(i % 3 === 0 && { method: 'POST', body: 'x'.repeat(100_000) }),
        }),
      )
      await until('all of them are under way', () => service.seen.length === 40)
      const started = performance.now()
      const stopped = world.platform.stop()
      await refuses(world.platform.httpsPort)
      await refuses(world.platform.httpPort)
      service.finish()
      for (const { status, text } of await Promise.all(asked)) assert.deepEqual([status, text], [200, 'first last'])
      await stopped
      assert.ok(performance.now() - started < LONG_DRAIN_MS / 2, 'it does not wait for finished visitors')
    })
  }

  test('with a delay keeps serving new visitors while it is not ready', async (t) => {
    const world = await World.start({ flags: { 'stop-delay': '5s' } })
    const { name } = await world.httpsTo(await recorder(t, (_, response) => response.end('served')))
    const readiness = async (): Promise<number> => (await fetch(`${world.platform.url}/readyz`)).status
    assert.equal(await readiness(), 200)
    const stopped = world.platform.stop()
    await until('it is not ready', async () => (await readiness()) === 503)
    assert.equal((await world.ask(name, {})).text, 'served')
    await stopped
    await refuses(world.platform.httpsPort)
  })

  test('marks every answer as the last of its connection', async (t) => {
    const world = await start(LONG_DRAIN_MS)
    const service = await patient(t)
    const { name } = await world.httpsTo(service)
    const listenerName = listenerOf(world, name)
    const visits = Array.from({ length: visitsOfAll(world.platform.planeCount) })
    const idle = await Promise.all(visits.map(() => dialled(listenerName)))
    const session = http2Over(await dialled(listenerName, { version: '2' }), listenerName)
    const goaway = once(session, 'goaway')
    const closed = Promise.all(idle.map((socket) => once(socket, 'close')))
    // The head of this answer is sent after the stop.
    const lazy = Promise.withResolvers<() => void>()
    const later = await recorder(t, (_, response) => lazy.resolve(() => response.end('late')))
    const other = await world.httpsTo(later)
    const late = await dialled(listenerOf(world, other.name))
    const asked = [askHttp1(late, other), askHttp2(session, listenerName)]
    const answer = await lazy.promise
    await until('the other is under way', () => service.seen.length === 1)
    const stopped = world.platform.stop()
    await goaway
    // By then every worker has begun to stop.
    await closed
    answer()
    service.finish()
    const [first, second] = await Promise.all(asked)
    assert.deepEqual([first?.text, first?.headers.connection], ['late', 'close'])
    assert.equal(second?.text, 'first last')
    await stopped
  })

  /** Each opens a stream that answers in capitals, and returns it with the port by which it came. */
  const streams: Record<string, (world: World, t: TestContext) => Promise<{ socket: Socket; port: number }>> = {
    'a TCP edge': async (world, t) => {
      const { port } = await world.tcpEdge({ backend: await world.toAddress(await shouts(t)) })
      return { socket: connect(port, '127.0.0.1'), port }
    },
    'a TLS edge': async (world, t) => {
      const backend = await world.toAddress(await shouts(t))
      const { name, port } = await world.tlsEdge({ backend, tls_termination: {} })
      return { socket: await dialled(listenerOf(world, name)), port }
    },
    'a route, after an upgrade': async (world, t) => {
      const switching = await listener(t, (socket) => {
        socket.once('data', () => {
          socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: shout\r\n\r\n')
          socket.on('data', (chunk) => socket.write(chunk.toString('latin1').toUpperCase()))
        })
        socket.on('end', () => socket.end())
      })
      const { name } = await world.httpsTo(switching)
      const socket = await dialled(listenerOf(world, name))
      socket.write(`GET / HTTP/1.1\r\nHost: ${name}\r\nConnection: Upgrade\r\nUpgrade: shout\r\n\r\n`)
      await once(socket, 'data')
      return { socket, port: world.platform.httpsPort }
    },
  }
  for (const [what, open] of Object.entries(streams)) {
    test(`lets a stream of ${what} continue until the drain time is over, and then ends it`, async (t) => {
      const world = await start()
      const { socket, port } = await open(world, t)
      const end = once(
        socket.on('error', () => {}),
        'close',
      )
      assert.ok(await isAlive(socket))
      const started = performance.now()
      const stopped = world.platform.stop()
      await refuses(port)
      assert.ok(await isAlive(socket), 'while it drains')
      await stopped
      const took = performance.now() - started
      assert.ok(took > DRAIN_MS * 0.9, `${took} ms`)
      await Promise.race([end, timeout(2000, 'it lives on')])
    })

    test(`does not wait for the drain time once a stream of ${what} has ended`, async (t) => {
      const world = await start(LONG_DRAIN_MS)
      const { socket, port } = await open(world, t)
      assert.ok(await isAlive(socket))
      const started = performance.now()
      const stopped = world.platform.stop()
      await refuses(port)
      socket.destroy()
      await stopped
      assert.ok(performance.now() - started < LONG_DRAIN_MS / 2)
    })
  }

  test('cuts off endless answers when the drain time is over', async (t) => {
    const world = await start()
    const service = await recorder(t, (_, response) => void response.write('for ever'))
    const { name } = await world.httpsTo(service)
    const asked = versions.map((version) => world.ask(name, { version }))
    await until('all of them are under way', () => service.seen.length === 2)
    const stopped = world.platform.stop()
    // Both at once, since either may be cut off first.
    await Promise.all(asked.map((each) => assert.rejects(each, 'the visitor sees that the rest is missing')))
    await stopped
  })

  test('does not wait for idle connections', async () => {
    const world = await start(LONG_DRAIN_MS)
    const listenerName = listenerOf(world, MARK)
    const socket = await dialled(listenerName)
    const session = http2Over(await dialled(listenerName, { version: '2' }), listenerName)
    await Promise.all([askHttp1(socket, listenerName), askHttp2(session, listenerName)])
    const plain = connect(world.platform.httpPort, '127.0.0.1')
    await once(plain, 'connect')
    const mute = connect(world.platform.httpsPort, '127.0.0.1')
    await once(mute, 'connect')
    mute.on('error', () => {})
    const started = performance.now()
    await world.platform.stop()
    // A ClientHello may take three seconds.
    assert.ok(performance.now() - started < LONG_DRAIN_MS / 2, `${performance.now() - started} ms`)
    for (const each of [socket, plain, mute]) each.destroy()
    session.destroy()
  })

  /** Requests that were on their way, but not read yet, when the server was told to stop. */
  const onTheirWay: Record<string, (world: World, name: string) => Promise<() => Promise<Answer>>> = {
    'on a connection that was used before': async (world, name) => {
      const socket = await dialled(listenerOf(world, name))
      assert.equal((await askHttp1(socket, { name })).status, 200)
      return () => askHttp1(socket, { name })
    },
    'on a new connection': async (world, name) => {
      const socket = await dialled(listenerOf(world, name))
      return () => askHttp1(socket, { name })
    },
    // A new connection has nothing on its way: it hears of the stop before it can send a request.
    'on an HTTP/2 connection': async (world, name) => {
      const session = http2Over(await dialled(listenerOf(world, name), { version: '2' }), { name })
      assert.equal((await askHttp2(session, { name })).status, 200)
      return () => askHttp2(session, { name })
    },
  }
  for (const [what, prepare] of Object.entries(onTheirWay)) {
    test(`fails no request that was sent before: ${what}`, async (t) => {
      const world = await start(LONG_DRAIN_MS)
      const { name } = await world.httpsTo(await recorder(t))
      const sends = await Promise.all(Array.from({ length: 20 }, () => prepare(world, name)))
      const asked = sends.map((send) => send())
      const stopped = world.platform.stop()
      const outcomes = await Promise.allSettled(asked)
      const failed = outcomes.filter(({ status }) => status === 'rejected')
      await stopped
      assert.equal(failed.length, 0, `${failed.length} of ${outcomes.length} failed`)
    })
  }
})

/** Resolves once the port accepts no more connections. */
async function refuses(port: number): Promise<void> {
  await until(`port ${port} refuses`, async () => {
    const socket = connect(port, '127.0.0.1')
    const isOpen = await Promise.race([
      once(socket, 'connect').then(() => true),
      once(socket, 'error').then(() => false),
    ]).catch(() => false)
    socket.destroy()
    return !isOpen
  })
}
