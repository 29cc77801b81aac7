/** D42: a restriction that is added to a live edge ends what is open of visitors that it no longer lets in. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { after, before, describe, type TestContext, test } from 'node:test'
import { until } from '../support/until.ts'
import type { Upstream } from '../support/upstream.ts'
import { authority, leaf, type Pair } from './edges/identities.ts'
import { isAlive, listener, recorder, shouts } from './edges/upstreams.ts'
import { askHttp1, dialled, http2Over, readUntil } from './edges/visitor.ts'
import { World } from './edges/world.ts'

/** The visitor that stays, and the one that no longer may. */
const FRIEND = '127.0.0.9'
const STRANGER = '127.0.0.66'

let world: World
let echo: Upstream
before(async () => {
  world = await World.start()
  echo = await shouts(world)
})
after(() => world.stop())

const entry = (name: string) => ({ name, port: world.platform.httpsPort, ca: world.platform.ca })

/** Accepts an upgrade, and then speaks in capitals. */
function websocketService(): Promise<Upstream> {
  return listener(world, (socket) => {
    socket.once('data', () => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
      socket.on('data', (chunk: Buffer) => socket.write(chunk.toString('latin1').toUpperCase()))
    })
  })
}

async function upgraded(t: TestContext, name: string, from: string, pair?: Pair): Promise<Socket> {
  const socket = await dialled(entry(name), { from, ...(pair && { tls: pair }) })
  t.after(() => socket.destroy())
  socket.write(`GET /ws HTTP/1.1\r\nHost: ${name}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`)
  await readUntil(socket, (text) => text.endsWith('\r\n\r\n'))
  assert.ok(await isAlive(socket))
  return socket
}

async function tcpStream(t: TestContext, port: number, localAddress: string): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', localAddress }).on('error', () => {})
  t.after(() => socket.destroy())
  assert.ok(await isAlive(socket))
  return socket
}

async function tlsStream(t: TestContext, name: string, from: string, pair?: Pair): Promise<Socket> {
  const socket = await dialled(entry(name), { from, ...(pair && { tls: pair }) })
  socket.on('error', () => {})
  t.after(() => socket.destroy())
  assert.ok(await isAlive(socket))
  return socket
}

const isGone = (socket: Socket) => until('it is ended', () => socket.closed)

const onlyFriend = async () => ({ ip_policy_ids: [await world.ipPolicy({ allow: [`${FRIEND}/32`] })] })

/** A rule for connections that refuses strangers. */
const denying = { inbound: [{ expressions: [`conn.client_ip == '${STRANGER}'`], actions: [{ type: 'deny' }] }] }

describe('a TCP edge', () => {
  for (const [what, change] of [
    ['an IP restriction', async (path: string) => world.api.put(`${path}/ip_restriction`, await onlyFriend())],
    ['a policy', (path: string) => world.api.put(`${path}/policy`, denying)],
  ] as const) {
    test(`${what} ends the streams of those that it refuses, and of nobody else`, async (t) => {
      const { path, port } = await world.tcpEdge({ backend: await world.toAddress(echo) })
      const friend = await tcpStream(t, port, FRIEND)
      const stranger = await tcpStream(t, port, STRANGER)
      await change(path)
      await isGone(stranger)
      assert.ok(await isAlive(friend))
    })
  }

  test('a rule added to an IP policy counts, other changes end nothing', async (t) => {
    const { api } = world
    const policy = await world.ipPolicy({ allow: ['127.0.0.0/8'] })
    const backend = await world.toAddress(echo)
    const { path, port } = await world.tcpEdge({ backend, ip_restriction: { ip_policy_ids: [policy] } })
    const friend = await tcpStream(t, port, FRIEND)
    const stranger = await tcpStream(t, port, STRANGER)
    await api.put(`${path}/backend`, await world.toAddress(echo))
    await world.inForce()
    assert.ok(await isAlive(stranger))
    await api.create('/ip_policy_rules', { cidr: `${STRANGER}/32`, action: 'deny', ip_policy_id: policy })
    await isGone(stranger)
    assert.ok(await isAlive(friend))
  })
})

describe('a TLS edge', () => {
  test('an IP restriction ends streams whose TLS passes through', async (t) => {
    const service = await listener(world, (socket) => socket.on('data', () => socket.write('x')))
    const { path, name, port } = await world.tlsEdge({ backend: await world.toAddress(service) })
    const { clientHello } = await import('./edges/client-hello.ts')
    const { dial } = await import('./edges/visitor.ts')
    const hello = await clientHello((own) => dial({ ...entry(name), port: own }))
    const open = async (localAddress: string): Promise<Socket> => {
      const socket = connect({ port, host: '127.0.0.1', localAddress }).on('error', () => {})
      t.after(() => socket.destroy())
      socket.write(hello)
      await once(socket, 'data')
      return socket
    }
    const [friend, stranger] = [await open(FRIEND), await open(STRANGER)]
    await world.api.put(`${path}/ip_restriction`, await onlyFriend())
    await isGone(stranger)
    friend.write('more')
    await once(friend, 'data')
  })

  test('mutual TLS ends streams without a certificate of its authorities', async (t) => {
    const [one, two] = [await authority('one'), await authority('two')]
    const ids: string[] = []
    for (const { certificatePem } of [one, two]) {
      ids.push((await world.api.create('/certificate_authorities', { ca_pem: certificatePem })).id)
    }
    const [ofOne, ofTwo] = [await leaf(one), await leaf(two)]
    const backend = await world.toAddress(echo)
    const { path, name } = await world.tlsEdge({ backend, tls_termination: {} })
    const bare = await tlsStream(t, name, STRANGER)
    await world.api.put(`${path}/mutual_tls`, { certificate_authority_ids: ids })
    await isGone(bare)
    await world.inForce()
    const [first, second] = [await tlsStream(t, name, FRIEND, ofOne), await tlsStream(t, name, FRIEND, ofTwo)]
    await world.api.put(`${path}/mutual_tls`, { certificate_authority_ids: [ids[1]] })
    await isGone(first)
    assert.ok(await isAlive(second))
  })
})

describe('an HTTPS edge', () => {
  test('an IP restriction ends upgraded connections, also by a longer route', async (t) => {
    const service = await websocketService()
    const edge = await world.httpsTo(service)
    const [route] = edge.routes
    const friend = await upgraded(t, edge.name, FRIEND)
    const stranger = await upgraded(t, edge.name, STRANGER)
    await world.api.put(`${route?.path}/response_headers`, { add: { 'x-other': 'change' } })
    await world.inForce()
    assert.ok(await isAlive(stranger))
    const longer = { match_type: 'path_prefix', match: '/ws', backend: await world.toAddress(service) }
    await world.api.create(`${edge.path}/routes`, { ...longer, ip_restriction: await onlyFriend() })
    await isGone(stranger)
    assert.ok(await isAlive(friend))
  })

  test('mutual TLS ends upgraded connections', async (t) => {
    const edge = await world.httpsTo(await websocketService())
    const { certificatePem } = await authority('three')
    const { id } = await world.api.create('/certificate_authorities', { ca_pem: certificatePem })
    const stranger = await upgraded(t, edge.name, STRANGER)
    await world.api.put(`${edge.path}/mutual_tls`, { certificate_authority_ids: [id] })
    await isGone(stranger)
  })

  test('an IP restriction ends streams of HTTP/2, and answers over HTTP/1.1', async (t) => {
    const web = await recorder(world, (_, response) => response.write('first'))
    const edge = await world.httpsTo(web)
    const open = async (from: string) => {
      const session = http2Over(await dialled(entry(edge.name), { from, version: '2' }), edge)
      t.after(() => session.destroy())
      const stream = session.request({ ':method': 'GET', ':path': '/' }).on('error', () => {})
      await once(stream, 'data')
      return stream
    }
    const [friend, stranger] = [await open(FRIEND), await open(STRANGER)]
    const older = await dialled(entry(edge.name), { from: STRANGER })
    older.on('error', () => {})
    older.write(`GET / HTTP/1.1\r\nHost: ${edge.name}\r\n\r\n`)
    await once(older, 'data')
    await world.api.put(`${edge.routes[0]?.path}/ip_restriction`, await onlyFriend())
    await until('the stream is ended', () => stranger.closed)
    await isGone(older)
    assert.equal(friend.closed, false)
  })

  test('a kept connection that was idle is refused with its next request', async (t) => {
    const edge = await world.httpsTo(await recorder(world, (_, response) => response.end('here')))
    const socket = await dialled(entry(edge.name), { from: STRANGER })
    t.after(() => socket.destroy())
    assert.equal((await askHttp1(socket, edge)).status, 200)
    await world.api.put(`${edge.routes[0]?.path}/ip_restriction`, await onlyFriend())
    await world.inForce()
    assert.equal((await askHttp1(socket, edge)).code, 'ERR_IP_REFUSED')
  })
})

test('an IP restriction of all public addresses ends streams and upgraded connections', async (t) => {
  const { path, port } = await world.tcpEdge({ backend: await world.toAddress(echo) })
  const edge = await world.httpsTo(await websocketService())
  const friends = [await tcpStream(t, port, FRIEND), await upgraded(t, edge.name, FRIEND)]
  const strangers = [await tcpStream(t, port, STRANGER), await upgraded(t, edge.name, STRANGER)]
  const policy = await world.ipPolicy({ allow: [`${FRIEND}/32`, '127.0.0.1/32'] })
  const body = { type: 'endpoints', enforced: true, ip_policy_ids: [policy] }
  const { id } = await world.api.create('/ip_restrictions', body)
  for (const stranger of strangers) await isGone(stranger)
  for (const friend of friends) assert.ok(await isAlive(friend))
  await world.api.delete(`/ip_restrictions/${id}`)
  await world.api.delete(path)
})
