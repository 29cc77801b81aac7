/** An agent with a connection to each data plane: visitors at any of them reach it without a hop through another. */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { after, before, describe, type TestContext, test } from 'node:test'
import { Agent } from '../../src/agent/agent.ts'
import type { Commands } from '../../src/agent/agent-commands.ts'
import { dialServer } from '../../src/agent/connect.ts'
import { parseServer } from '../../src/agent/server-address.ts'
import type { Connections } from '../../src/agent/session-connections.ts'
import { Secret } from '../../src/lib/secrets/secret.ts'
import { ApiClient } from '../support/api-client.ts'
import { metric } from '../support/metrics.ts'
import { startPlatform } from '../support/platform.ts'
import { gauges, online } from '../support/presence.ts'
import { serve } from '../support/server-process.ts'
import { until } from '../support/until.ts'
import { visit } from '../support/visitor.ts'

const AUTHTOKEN = 'test_authtoken_of_the_first_admin_01'
const API_KEY = 'test_api_key_of_the_first_admin_0001'

/** Enough that both planes get some: the chance of all reaching the same one of two is less than one in 10^17. */
const VISITS = 60

/** A server with two data planes, and what tests look at. */
interface TwoPlanes {
  readonly agents: string
  readonly ca: string
  readonly metricsUrl: string
  readonly admin: ApiClient
  readonly urlOf: (name: string) => string
  /** How many lines of the log have this message. */
  readonly count: (message: string) => number
}

const legUp = 'agent leg online'
const legDown = 'agent leg offline'

/** An agent whose connections the test can cut. Every request gets a connection of its own. */
async function startAgent(t: TestContext, { agents, ca }: TwoPlanes, name: string, connections: Connections = 'auto') {
  const sockets: Duplex[] = []
  const server = parseServer(agents)
  const stop = { unsupported: '', run: () => ({ afterwards: () => void agent.close() }) }
  const commands: Commands = { stop, restart: stop, update: stop }
  const agent = new Agent({
    ...{ server, ca, connections, commands },
    authtoken: new Secret(AUTHTOKEN),
    version: '1.0.0',
    async dial({ signal }) {
      const socket = await dialServer({ server, ca, signal })
      sockets.push(socket)
      return socket
    },
  })
  t.after(() => agent.close())
  await agent.start()
  await agent.open({
    name: 'web',
    asks: { proto: 'https', opts: { Hostname: name } },
    forwardsTo: 'the test',
    forwardsProto: '',
    metadata: '',
    target: {
      accept(connection) {
        connection.on('error', () => {})
        connection.once('data', () => {
          connection.end('HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 6\r\n\r\nserved')
        })
      },
    },
  })
  const main = () => sockets[0]
  const legs = () => sockets.slice(1).filter((each) => !each.destroyed)
  return { agent, main, legs }
}

/** Visits on new connections; returns how many of them hopped. */
async function hops({ ca, metricsUrl, urlOf }: TwoPlanes, name: string): Promise<number> {
  const before = await metric(metricsUrl, 'postern_relayed_connections_total')
  for (let i = 0; i < VISITS; i++) {
    const { status, text } = await visit(urlOf(name), { ca })
    assert.deepEqual([status, text], [200, 'served'])
  }
  return (await metric(metricsUrl, 'postern_relayed_connections_total')) - before
}

function suite(start: () => Promise<{ server: TwoPlanes; stop: () => Promise<unknown> }>): void {
  let server: TwoPlanes
  let stop: () => Promise<unknown>
  before(async () => {
    ;({ server, stop } = await start())
  })
  after(() => stop())

  const oneMore = (message: string, than: number) => until(message, () => server.count(message) > than)

  test('with one connection some requests hop, and with one to each none', async (t) => {
    const single = await startAgent(t, server, 'single.example.test', 1)
    const share = (await hops(server, 'single.example.test')) / VISITS
    assert.ok(share > 0, 'about half of them')
    assert.equal(server.count(legUp), 0)
    await single.agent.close()

    const { agent, legs } = await startAgent(t, server, 'hot.example.test')
    await oneMore(legUp, 0)
    assert.equal(await hops(server, 'hot.example.test'), 0)
    t.diagnostic(`share of requests that hop: ${share.toFixed(2)} with one connection, 0 with two`)
    assert.equal(legs().length, 1)

    const { sessions, tunnels } = await online(server)
    assert.deepEqual([sessions.length, tunnels.length], [1, 1])
    const { sessions: counted } = await gauges(server)
    assert.equal(counted, 1)
    await agent.close()
    await oneMore(legDown, 0)
  })

  test('a leg that is cut is replaced, and visitors are relayed meanwhile', async (t) => {
    const [ups, downs] = [server.count(legUp), server.count(legDown)]
    const { agent, legs } = await startAgent(t, server, 'cut.example.test')
    await oneMore(legUp, ups)
    for (const leg of legs()) leg.destroy()
    await oneMore(legDown, downs)
    await hops(server, 'cut.example.test')
    await oneMore(legUp, ups + 1)
    assert.equal(await hops(server, 'cut.example.test'), 0)
    await agent.close()
  })

  test('a session that comes back has its legs again', async (t) => {
    const ups = server.count(legUp)
    const { agent, main } = await startAgent(t, server, 'back.example.test')
    await oneMore(legUp, ups)
    const before = await online(server)
    main()?.destroy()
    await oneMore(legUp, ups + 1)
    assert.equal(await hops(server, 'back.example.test'), 0)
    assert.deepEqual(
      (await online(server)).sessions.map(({ id }) => id),
      before.sessions.map(({ id }) => id),
    )
    await agent.close()
  })

  test('a session that the API stops, or whose credential is deleted, ends at all planes', async (t) => {
    const stopped = await startAgent(t, server, 'stopped.example.test')
    await until('it has a leg', () => stopped.legs().length === 1)
    const { sessions } = await online(server)
    assert.equal((await server.admin.send('POST', `/tunnel_sessions/${sessions[0].id}/stop`)).status, 204)
    await until('all connections are closed', () => stopped.legs().length === 0 && stopped.main()?.destroyed)

    const [ups, downs] = [server.count(legUp), server.count(legDown)]
    const deleted = await startAgent(t, server, 'deleted.example.test')
    await oneMore(legUp, ups)
    const { sessions: left } = await online(server)
    const [{ credential }] = left
    assert.equal((await server.admin.send('DELETE', `/credentials/${credential.id}`)).status, 204)
    await oneMore(legDown, downs)
    await until('no session is online', async () => (await online(server)).sessions.length === 0)
    await deleted.agent.close()
  })
}

describe('two data planes in one process', () => {
  suite(async () => {
    const platform = await startPlatform({ planeCount: 2, flags: { 'drain-timeout': '1s' } })
    const { agents, ca, metricsUrl, admin, httpsPort, log } = platform
    const server: TwoPlanes = {
      ...{ agents, ca, metricsUrl, admin },
      urlOf: (name) => `https://${name}:${httpsPort}`,
      count: (message) => log.filter((line) => line.includes(`"msg":"${message}"`)).length,
    }
    return { server, stop: () => platform.stop() }
  })
})

describe('two workers', () => {
  suite(async () => {
    const folder = mkdtempSync(join(tmpdir(), 'postern-legs-'))
    const env = { POSTERN_BOOTSTRAP_API_KEY: API_KEY, POSTERN_BOOTSTRAP_AUTHTOKEN: AUTHTOKEN }
    const running = await serve({ dataDir: folder, env, flags: { workers: '2', 'drain-timeout': '1s' } })
    const lines = { text: '' }
    running.child.stderr?.on('data', (text: string) => {
      lines.text += text
    })
    const { agents, metricsUrl, url, https } = running
    const server: TwoPlanes = {
      agents,
      metricsUrl: `${metricsUrl}/metrics`,
      ca: readFileSync(join(folder, 'ca.pem'), 'utf8'),
      admin: new ApiClient(url, API_KEY),
      urlOf: (name) => `https://${name}:${https.slice(https.lastIndexOf(':') + 1)}`,
      count: (message) => lines.text.split(`"msg":"${message}"`).length - 1,
    }
    const stop = async () => {
      await running.stop()
      rmSync(folder, { recursive: true, force: true })
    }
    return { server, stop }
  })
})
