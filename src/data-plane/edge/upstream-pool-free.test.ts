import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { describe, test } from 'node:test'
import { DialFault } from '../../model/dial.ts'
import type { UpstreamConnection } from '../requests/http-exchange.ts'
import type { DialTarget, Visit } from './dial.ts'
import { ask } from './testing/http-visitor.ts'
import {
  closingTarget,
  edgeOf,
  httpService,
  offlineTarget,
  Plane,
  plainEdgeOf,
  rawService,
  type Service,
} from './testing/test-http-plane.ts'
import type { UpstreamPool } from './upstream-pool.ts'

const ends = { ip: '192.0.2.1', port: 1, serverIp: '192.0.2.2', serverPort: 2 }
const visit: Visit = { ip: ends.ip, port: ends.port, proto: 'https', edge: 'https', passthroughTls: false }

/** `count` unused connections. */
async function opened(pool: UpstreamPool, target: DialTarget, count: number): Promise<UpstreamConnection[]> {
  const connections: UpstreamConnection[] = []
  while (connections.length < count) {
    const connection = await pool.open(target, visit, ends)
    if (connection instanceof DialFault) throw connection
    connections.push(connection)
  }
  return connections
}

const closedOf = (connections: readonly UpstreamConnection[]): boolean[] => connections.map(({ isClosed }) => isClosed)

const silent = (socket: Socket): unknown => socket.on('error', () => {}).resume()

describe('connections to a target that is reached another way', () => {
  test('are closed when they are free, and after their request when they are not', async (t) => {
    const [a, b] = [await rawService(t, silent), await rawService(t, silent)]
    const { pool } = await Plane.start(t, [])
    const [free, used] = await opened(pool, a.target, 2)
    const [other] = await opened(pool, b.target, 1)
    assert.ok(free && used && other)
    pool.give(free)
    pool.give(other)
    // One that is being dialled may still use the former way.
    const dialling = opened(pool, a.target, 1)
    pool.retireAll(a.target.key)
    assert.deepEqual(closedOf([free, used, other]), [true, false, false])
    const [dialled] = await dialling
    const [later] = await opened(pool, a.target, 1)
    assert.ok(dialled && later)
    for (const each of [used, dialled, later]) pool.give(each)
    assert.deepEqual(closedOf([used, dialled, later]), [true, true, false])
    assert.ok(pool.take(a.target, ends, { mayRepeat: true }) === later)
    assert.equal(pool.targetCount, 2)
  })

  test('are not kept while they are not worth keeping', async (t) => {
    const service = await rawService(t, silent)
    let mayKeep = false
    const { pool } = await Plane.start(t, [], { poolOptions: { mayKeep: () => mayKeep } })
    const [first, second] = await opened(pool, service.target, 2)
    assert.ok(first && second)
    pool.give(first)
    mayKeep = true
    pool.give(second)
    assert.deepEqual(closedOf([first, second]), [true, false])
  })
})

describe('free connections', () => {
  test('beyond the bound close in the order in which they became free, however they were taken before', async (t) => {
    const [a, b] = [await rawService(t, silent), await rawService(t, silent)]
    const { pool } = await Plane.start(t, [], { poolOptions: { maxKept: 4 } })
    const [a1, a2, a3, b1, b2] = [...(await opened(pool, a.target, 3)), ...(await opened(pool, b.target, 2))]
    assert.ok(a1 && a2 && a3 && b1 && b2)
    for (const connection of [a1, b1, a2, b2]) pool.give(connection)
    const take = ({ target }: Service): UpstreamConnection | undefined => pool.take(target, ends, { mayRepeat: true })
    assert.ok(take(a) === a2 && take(b) === b2 && take(a) === a1)
    for (const connection of [b2, a1, a2]) pool.give(connection)
    assert.equal(pool.size, 4)

    const all = [b1, b2, a1, a2, a3]
    pool.give(a3)
    assert.deepEqual(closedOf(all), [true, false, false, false, false])
    const [later] = await opened(pool, b.target, 1)
    assert.ok(later)
    pool.give(later)
    assert.deepEqual(closedOf(all), [true, true, false, false, false])
    assert.ok(take(a) === a3 && take(a) === a2 && take(a) === a1 && take(b) === later)
    assert.equal(pool.size, 0)
  })

  test('close independently of the others, wherever they are in the list', async (t) => {
    for (const place of [0, 1, 2]) {
      const { target } = await rawService(t, silent)
      const { pool } = await Plane.start(t, [], { poolOptions: { maxKept: 3 } })
      const connections = await opened(pool, target, 3)
      for (const connection of connections) pool.give(connection)
      const [closed] = connections.splice(place, 1)
      closed?.close()
      assert.equal(pool.size, 2)

      const more = await opened(pool, target, 2)
      for (const connection of more) pool.give(connection)
      assert.deepEqual(closedOf(connections), [true, false])
      const left = [...connections.slice(1), ...more]
      for (const connection of left.toReversed()) assert.ok(pool.take(target, ends, { mayRepeat: true }) === connection)
      assert.equal(pool.take(target, ends, { mayRepeat: true }), undefined)
    }
  })

  test('are there once, however often they are given back', async (t) => {
    const { target } = await rawService(t, silent)
    const { pool } = await Plane.start(t, [])
    const [connection] = await opened(pool, target, 1)
    assert.ok(connection)
    for (let i = 0; i < 3; i++) pool.give(connection)
    assert.equal(pool.size, 1)
    assert.ok(pool.take(target, ends, { mayRepeat: true }) === connection)
    assert.equal(pool.take(target, ends, { mayRepeat: true }), undefined)
  })

  test('are all closed with the pool, and those in use when they are given back', async (t) => {
    const { target } = await rawService(t, silent)
    const { pool } = await Plane.start(t, [])
    const connections = await opened(pool, target, 4)
    for (const connection of connections.slice(1)) pool.give(connection)
    pool.close()
    assert.deepEqual(closedOf(connections), [false, true, true, true])
    for (const connection of connections) pool.give(connection)
    assert.deepEqual(closedOf(connections), [true, true, true, true])
    assert.deepEqual([pool.size, pool.targetCount], [0, 0])
  })
})

describe('a target', () => {
  test('is known while a connection to it is open, free or not, and no longer', async (t) => {
    const { target } = await rawService(t, silent)
    const { pool } = await Plane.start(t, [])
    const [first, second] = await opened(pool, target, 2)
    assert.ok(first && second)
    pool.give(first)
    assert.equal(pool.targetCount, 1)
    first.close()
    // Given back by a user who does not know that it closed, and reported once more.
    pool.give(first)
    first.onChange?.()
    assert.deepEqual([pool.size, pool.targetCount], [0, 1])
    second.close()
    assert.equal(pool.targetCount, 0)

    const [third] = await opened(pool, target, 1)
    assert.ok(third)
    pool.give(third)
    assert.ok(pool.take(target, ends, { mayRepeat: true }) === third)
    assert.equal(pool.targetCount, 1)
  })

  test('that cannot be dialled is never known', async (t) => {
    const { pool } = await Plane.start(t, [])
    assert.ok((await pool.open(offlineTarget(), visit, ends)) instanceof DialFault)
    assert.equal(pool.targetCount, 0)
  })

  test('whose connection closed before it was handed over is not known', async (t) => {
    const { pool } = await Plane.start(t, [])
    const fault = await pool.open(closingTarget(), visit, ends)
    assert.ok(fault instanceof DialFault && fault.reason === 'refused')
    assert.deepEqual([pool.size, pool.targetCount], [0, 0])
  })

  test('whose connections are each for one visitor is forgotten with them', async (t) => {
    const { target } = await rawService(t, silent, { proxyHeader: 1 })
    const { pool } = await Plane.start(t, [])
    const connections: UpstreamConnection[] = []
    for (let port = 1; port <= 20; port++) {
      const connection = await pool.open(target, visit, { ...ends, port })
      if (connection instanceof DialFault) throw connection
      connections.push(connection)
    }
    assert.equal(pool.targetCount, 20)
    for (const connection of connections) connection.close()
    assert.equal(pool.targetCount, 0)
  })

  test('is forgotten when its last connection ends with a request, or becomes raw bytes', async (t) => {
    const closing = await httpService(t, (_request, response) =>
      response.writeHead(200, { connection: 'close' }).end('hi'),
    )
    const plane = await Plane.start(t, [edgeOf(closing)])
    assert.equal((await ask(t, plane, '1.1')).text, 'hi')
    assert.equal(plane.pool.targetCount, 0)

    const upgrading = await rawService(t, (socket) =>
      socket
        .on('error', () => {})
        .once('data', () =>
          socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nraw'),
        ),
    )
    const other = await Plane.start(t, [plainEdgeOf(upgrading)])
    const visitor = connect(other.httpPort, '127.0.0.1').on('error', () => {})
    t.after(() => visitor.destroy())
    visitor.write('GET / HTTP/1.1\r\nHost: a.test\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n')
    let text = ''
    for await (const chunk of visitor) {
      text += String(chunk)
      if (text.endsWith('raw')) break
    }
    assert.match(text, /^HTTP\/1\.1 101 /)
    assert.deepEqual([upgrading.dials, other.pool.targetCount], [1, 0])
  })
})
