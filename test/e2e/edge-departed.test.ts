/** Visitors that leave during an upload that the service does not read: nothing is left behind. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { readTcpTable, tcpStates } from '../../src/lib/net/tcp-table.ts'
import { metric } from '../support/metrics.ts'
import { until } from '../support/until.ts'
import { http2Upstream, tcpUpstream, type Upstream } from '../support/upstream.ts'
import { ownAgent } from './edges/agents.ts'
import { dialled, http2Over } from './edges/visitor.ts'
import { World } from './edges/world.ts'

let world: World
before(async () => {
  world = await World.start()
})
after(() => world.stop())

/** Connections to the service, as the system counts them, since a service that does not read notices no close. */
async function connectionsTo({ port }: Upstream): Promise<number> {
  const table = (await readTcpTable(4)) ?? new Map()
  const end = `:${port.toString(16).padStart(4, '0').toUpperCase()} `
  return [...table].filter(([key, state]) => key.includes(end) && state === tcpStates.established).length
}

/** Sends until no more bytes are accepted and some wait on our side. */
async function flood(socket: Socket): Promise<void> {
  const piece = Buffer.alloc(1024 * 1024)
  const write = (): void => {
    if (!socket.destroyed) socket.write(piece, (error) => error ?? write())
  }
  write()
  let seen = -1
  await until('the upload stalls', async () => {
    const { bytesWritten } = socket
    await new Promise((resolve) => setTimeout(resolve, 300))
    const isStalled = bytesWritten === seen && socket.writableLength > 0
    seen = bytesWritten
    return isStalled
  })
}

async function tcpSocket(port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1' })
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket
}

/** Begins an upload over HTTP/1.1 that stalls, and returns the connection below its TLS. */
async function uploadTo(name: string, { platform } = world): Promise<Socket> {
  const { httpsPort: port, ca } = platform
  const below = await tcpSocket(port)
  const visitor = await dialled({ name, port, ca }, { version: '1.1', below })
  visitor.on('error', () => {})
  visitor.write(`POST / HTTP/1.1\r\nHost: ${name}\r\nContent-Length: ${2 ** 40}\r\n\r\n`)
  await flood(visitor)
  return below
}

describe('the service side of a stalled upload ends when its visitor leaves:', () => {
  const services: [what: string, start: (owner: World) => Promise<{ service: Upstream; name: string }>][] = [
    [
      'to a service that the server dials',
      async (owner) => {
        const service = await tcpUpstream(owner, (socket) => socket.pause())
        return { service, name: (await world.httpsTo(service)).name }
      },
    ],
    [
      'through a tunnel',
      async (owner) => {
        const service = await tcpUpstream(owner, (socket) => socket.pause())
        const labels = { departed: world.name() }
        await (await ownAgent(owner, world)).forward({ labels, addr: service.address })
        const backend = await world.toBackend('tunnel_group', { labels })
        return { service, name: (await world.httpsEdge({ routes: [{ backend }] })).name }
      },
    ],
  ]
  for (const [what, start] of services) {
    test(`HTTP/1.1, ${what}`, async () => {
      const { service, name } = await start(world)
      const below = await uploadTo(name)
      assert.ok((await connectionsTo(service)) > 0)
      below.resetAndDestroy()
      await until('nothing is connected to the service', async () => (await connectionsTo(service)) === 0)
    })

    test(`HTTP/2, ${what}`, async () => {
      const { service, name } = await start(world)
      const { httpsPort: port, ca } = world.platform
      const session = http2Over(await dialled({ name, port, ca }, { version: '2' }), { name })
      const stream = session.request({ ':method': 'POST', ':path': '/' })
      stream.on('error', () => {})
      stream.write(Buffer.alloc(32 * 1024 * 1024))
      await until('the upload has begun', async () => (await connectionsTo(service)) > 0)
      session.destroy()
      await until('nothing is connected to the service', async () => (await connectionsTo(service)) === 0)
    })
  }

  test('to a service that speaks HTTP/2: the stream is cancelled', async () => {
    const cancelled: number[] = []
    const service = await http2Upstream(world, (stream) => {
      stream.pause()
      stream.on('close', () => cancelled.push(stream.rstCode ?? -1))
    })
    const labels = { departed: 'http2' }
    await (await ownAgent(world, world)).forward({ labels, addr: service.address, app_protocol: 'http2' })
    const backend = await world.toBackend('tunnel_group', { labels })
    const { name } = await world.httpsEdge({ routes: [{ backend }] })
    const below = await uploadTo(name)
    below.resetAndDestroy()
    await until('the service is told', () => cancelled.length === 1)
    assert.deepEqual(cancelled, [8])
  })

  test('TCP', async () => {
    const service = await tcpUpstream(world, (socket) => socket.pause())
    const edge = await world.tcpEdge({ backend: await world.toAddress(service) })
    const visitor = await tcpSocket(edge.port)
    await flood(visitor)
    visitor.resetAndDestroy()
    await until('nothing is connected to the service', async () => (await connectionsTo(service)) === 0)
  })

  test('TLS that ends at the edge', async () => {
    const service = await tcpUpstream(world, (socket) => socket.pause())
    const tls_termination = { terminate_at: 'edge' }
    const edge = await world.tlsEdge({ backend: await world.toAddress(service), tls_termination })
    const { httpsPort: port, ca } = world.platform
    const below = await tcpSocket(port)
    const visitor = await dialled({ name: edge.name, port, ca }, { below })
    visitor.on('error', () => {})
    await flood(visitor)
    below.resetAndDestroy()
    await until('nothing is connected to the service', async () => (await connectionsTo(service)) === 0)
  })
})

test('a visitor whose end does not fit on the way is gone when its upload has not moved for --idle-timeout', async (t) => {
  const own = await World.start({ flags: { 'idle-timeout': '2s' }, planeCount: 1 })
  t.after(() => own.stop())
  const service = await tcpUpstream(own, (socket) => socket.pause())
  const { name } = await own.httpsTo(service)
  const visitors = await Promise.all([1, 2, 3].map(() => uploadTo(name, own)))
  // Their systems still have bytes to send, which come before the end.
  for (const visitor of visitors) visitor.destroy()
  await until('nothing is connected to the service', async () => (await connectionsTo(service)) === 0)
  await until('no visitor is left', async () => {
    const open = await metric(own.platform.metricsUrl, 'postern_connections_open{door="visitors"}')
    return open === 0
  })
})
