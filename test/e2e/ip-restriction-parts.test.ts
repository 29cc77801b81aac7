/** IP restrictions of agents, public addresses and pages: in force at once, on every listener they name (D64). */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect as connectTcp, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { openAdmin } from '../../src/server/compose/open-admin.ts'
import { readSettings } from '../../src/server/config/read-settings.ts'
import { ownDriver } from '../interop/agents/own-driver.ts'
import { eachStore } from '../support/databases.ts'
import { until } from '../support/until.ts'
import { listener, recorder } from './edges/upstreams.ts'
import { type Answer, askHttp1, askHttp2, dial, dialled, http2Over } from './edges/visitor.ts'
import { MARK, World } from './edges/world.ts'

/** The one address that the restrictions of these tests admit. */
const ADMITTED = '127.0.0.9'

async function restrict(world: World, type: string, also = {}): Promise<string> {
  const policy = await world.ipPolicy({ allow: [`${ADMITTED}/32`] })
  const { id } = await world.api.create('/ip_restrictions', { type, enforced: true, ip_policy_ids: [policy], ...also })
  return `/ip_restrictions/${id}`
}

/** Whether a connection is closed without a byte from the server, even after a TLS handshake is offered. */
async function isClosedUnanswered(below: Socket): Promise<boolean> {
  const socket = connectTls({ socket: below, servername: MARK, rejectUnauthorized: false })
  for (const each of [below, socket]) each.on('error', () => {})
  await new Promise((resolve) => {
    below.once('close', resolve)
    socket.once('secureConnect', resolve)
  })
  below.destroy()
  return below.bytesRead === 0
}

function plainConnection(t: TestContext, port: number, from: string): Socket {
  const socket = connectTcp({ port, host: '127.0.0.1', localAddress: from })
  t.after(() => socket.destroy())
  return socket
}

eachStore((store) => {
  async function start(t: TestContext, flags: Readonly<Record<string, string>> = {}): Promise<World> {
    const world = await World.start({ databaseUrl: await store.url(), flags })
    t.after(() => world.stop())
    return world
  }

  test('a restriction of endpoints keeps other visitors from all HTTPS, TLS, TCP and HTTP addresses', async (t) => {
    const world = await start(t)
    const web = await recorder(world)
    const bytes = await listener(world, (socket) => socket.end('hello'))
    const https = await world.httpsTo(web)
    const backend = await world.toAddress(bytes)
    const [tcp, tls] = [await world.tcpEdge({ backend }), await world.tlsEdge({ backend, tls_termination: {} })]
    const listenerName = { name: https.name, port: world.platform.httpsPort, ca: world.platform.ca }

    // Connections from before, over both versions.
    const kept = await dialled(listenerName)
    t.after(() => kept.destroy())
    const session = http2Over(dial(listenerName, { version: '2' }), listenerName)
    t.after(() => session.destroy())
    assert.equal((await askHttp1(kept, listenerName)).status, 200)
    assert.equal((await askHttp2(session, listenerName)).status, 200)
    const served = web.seen.length

    const path = await restrict(world, 'endpoints')
    const refused = async (ask: () => Promise<Answer>): Promise<void> => {
      const answer = await until('a request is refused', async () => {
        const each = await ask()
        return each.status === 403 && each
      })
      assert.equal(answer.code, 'ERR_IP_REFUSED')
    }
    await refused(() => askHttp1(kept, listenerName))
    await refused(() => askHttp2(session, listenerName))
    const afterwards = web.seen.length

    // New connections: closed before a handshake, and over plain HTTP with an explanation.
    for (const port of [tcp.port, tls.port, world.platform.httpsPort]) {
      assert.ok(await isClosedUnanswered(plainConnection(t, port, '127.0.0.1')), `port ${port}`)
    }
    const plain = plainConnection(t, world.platform.httpPort, '127.0.0.1')
    assert.equal((await askHttp1(plain, { name: https.name })).status, 403)
    assert.equal(web.seen.length, afterwards)
    assert.ok(afterwards >= served)

    // Admitted visitors see no difference.
    assert.equal((await world.ask(https.name, { from: ADMITTED })).status, 200)
    const admitted = plainConnection(t, tcp.port, ADMITTED)
    const [hello] = (await once(admitted, 'data')) as [Buffer]
    assert.equal(hello.toString(), 'hello')

    await world.api.delete(path)
    await until('everybody is let in again', async () => (await askHttp1(kept, listenerName)).status === 200)
    assert.equal((await world.ask(https.name)).status, 200)
  })

  test('behind a trusted proxy the restriction of endpoints judges the visitor, not the proxy', async (t) => {
    const world = await start(t, { 'trusted-proxies': '127.0.0.2/32' })
    const tcp = await world.tcpEdge({ backend: await world.toAddress(await listener(world, (s) => s.end('hello'))) })
    const visit = (ip: string): Socket => {
      const socket = plainConnection(t, tcp.port, '127.0.0.2')
      socket.write(`PROXY TCP4 ${ip} 127.0.0.1 4000 443\r\n`)
      return socket
    }
    await restrict(world, 'endpoints')
    await until('a stranger is refused', () => isClosedUnanswered(visit('127.0.0.1')))
    const [hello] = (await once(visit(ADMITTED), 'data')) as [Buffer]
    assert.equal(hello.toString(), 'hello')
  })

  test('a restriction of agents keeps other agents from connecting, and ends their sessions', async (t) => {
    const world = await start(t)
    const { agents: server, ca, authtoken } = world.platform
    const agent = await ownDriver.connect({ server, ca, authtoken })
    t.after(() => agent.close())
    await agent.open({ addr: 1 })
    const sessions = async (): Promise<number> => (await world.api.get('/tunnel_sessions')).tunnel_sessions.length
    assert.equal(await sessions(), 1)

    await restrict(world, 'agent')
    await until('the session has ended', async () => (await sessions()) === 0, { limitMs: 5000 })
    const port = Number(server.slice(server.lastIndexOf(':') + 1))
    assert.ok(await isClosedUnanswered(plainConnection(t, port, '127.0.0.1')), 'before TLS')
    const admitted = plainConnection(t, port, ADMITTED)
    await once(admitted, 'connect')
    await world.api.get('/api_keys')
    assert.ok(!admitted.closed, 'an admitted address may begin')

    const flags = { 'data-dir': world.platform.dataDir, 'database-url': world.platform.databaseUrl }
    const database = await openAdmin(readSettings({ flags, env: {}, cwd: world.platform.dataDir }))
    assert.deepEqual(await database.liftRestrictions(), ['agent'])
    await database.close()
    await until('the agent is back', async () => (await sessions()) === 1, { limitMs: 30_000 })
  })

  test('a restriction of the dashboard keeps other addresses from the pages, but not from the API', async (t) => {
    const world = await start(t)
    const { url } = world.platform
    await restrict(world, 'dashboard')
    for (const path of ['/', '/docs', '/docs/', '/openapi.json']) {
      const answer = await fetch(`${url}${path}`, { headers: { accept: 'text/html' } })
      assert.equal(answer.status, 403, path)
      assert.equal(((await answer.json()) as { error_code: string }).error_code, 'ERR_IP_NOT_ALLOWED')
    }
    assert.equal((await fetch(`${url}/healthz`)).status, 200)
    await world.api.get('/api_keys')
  })

  test('a restriction that is not enforced lets everybody in and logs whom it would refuse', async (t) => {
    const world = await start(t)
    const https = await world.httpsTo(await recorder(world))
    for (const type of ['api', 'dashboard', 'agent', 'endpoints']) await restrict(world, type, { enforced: false })
    const { agents: server, ca, authtoken, url } = world.platform
    const logged = () =>
      new Set(
        world.logged('IP restriction would refuse a connection if enforced').map(({ restriction }) => restriction),
      )
    await until('all four are logged', async () => {
      assert.equal((await world.ask(https.name)).status, 200)
      assert.equal((await fetch(`${url}/openapi.json`)).status, 200)
      await (await ownDriver.connect({ server, ca, authtoken })).close()
      await world.api.get('/api_keys')
      return logged().size === 4
    })
    assert.equal(world.logged('IP restriction refused a connection').length, 0)
    assert.ok(world.logged('IP restriction would refuse a connection if enforced').length <= 4 * 20)
  })

  test('a restriction holds from the first connection after a restart', async (t) => {
    const dataDir = await mkdtemp(join(tmpdir(), 'postern-restricted-'))
    t.after(() => rm(dataDir, { recursive: true }))
    const options = { dataDir, databaseUrl: await store.url() }
    const before = await World.start(options)
    await restrict(before, 'endpoints')
    await restrict(before, 'agent')
    await before.stop()
    const world = await World.startAgain(before, options)
    t.after(() => world.stop())
    const agents = Number(world.platform.agents.slice(world.platform.agents.lastIndexOf(':') + 1))
    for (const port of [world.platform.httpsPort, agents]) {
      assert.ok(await isClosedUnanswered(plainConnection(t, port, '127.0.0.1')), `port ${port}`)
    }
  })
})
