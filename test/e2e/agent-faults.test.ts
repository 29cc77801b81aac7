/** Agents, servers and links that die, freeze or lose packets: nothing is left behind, and the same addresses come back. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { TestAgent } from '../../src/data-plane/tunnel/testing/raw-agent.ts'
import { Secret } from '../../src/lib/secrets/secret.ts'
import { ownDriver } from '../interop/agents/own-driver.ts'
import { type AgentProcess, startAgent } from '../support/agent-process.ts'
import { ApiClient } from '../support/api-client.ts'
import { portToKeep, tcpRange } from '../support/free-port.ts'
import { openOneWayGate } from '../support/one-way-gate.ts'
import { type Platform, startPlatform } from '../support/platform.ts'
import { assertNobodyOnline, online, sessionsOnline } from '../support/presence.ts'
import { serve } from '../support/server-process.ts'
import { until } from '../support/until.ts'
import { httpUpstream, tcpUpstream } from '../support/upstream.ts'
import { beginVisit, dialTcp, exchange, visit } from '../support/visitor.ts'

/** The heartbeat of agents in these tests: the shortest that a server accepts. */
const HEARTBEAT_S = 1

/** Until a silent peer is given up: the interval and the tolerance, and some time for a busy machine. */
const DEAD_MS = 2 * HEARTBEAT_S * 1000 + 8000

/** Until a silent agent loses its addresses to another: two seconds, and some time for a busy machine. */
const MAKE_WAY_MS = 2000 + 8000

let platform: Platform
before(async () => {
  // TCP ports that nothing else gets while an agent is away.
  const range = await tcpRange(100)
  platform = await startPlatform({ flags: { 'drain-timeout': '1s', ...range.flags } })
})
after(() => platform.stop())

const portOf = (address: string): number => Number(address.slice(address.lastIndexOf(':') + 1))

/** A process with a tunnel of each kind. */
async function startFull(t: TestContext, server = platform.agents): Promise<AgentProcess> {
  const web = await httpUpstream(t, (request, response) => {
    if (request.url === '/slow') response.write('begun')
    else response.end('web')
  })
  const bytes = await tcpUpstream(t)
  const { caFile, authtoken } = platform
  return startAgent(t, {
    ...{ server, caFile, authtoken, metadata: 'of a process', heartbeatS: HEARTBEAT_S },
    tunnels: {
      web: { addr: web.address, domain: 'faulty.example.com' },
      random: { addr: web.address },
      bytes: { proto: 'tcp', addr: bytes.address },
      labelled: { labels: { app: 'faulty' }, addr: web.address },
    },
  })
}

/** Resolves when all four tunnels are online. */
async function allOnline() {
  const all = await until('four tunnels', async () => {
    const now = await online(platform)
    return now.tunnels.length === 4 && now
  })
  const urls: string[] = all.tunnels.map(({ public_url }) => public_url).filter(Boolean)
  const [tcp = ''] = urls.filter((url) => url.startsWith('tcp:'))
  return { ...all, urls, tcp, web: `https://faulty.example.com:${platform.httpsPort}` }
}

/** Visitors with open connections; each resolves when it is disconnected. */
async function visitors(t: TestContext, { web, tcp }: { web: string; tcp: string }) {
  const asked = beginVisit(web, platform, { path: '/slow' })
  const [response] = (await once(asked, 'response')) as [IncomingMessage]
  const socket = await dialTcp(tcp)
  t.after(() => socket.destroy())
  socket.write('ping')
  await once(socket, 'data')
  asked.on('error', () => {})
  response.resume().on('error', () => {})
  return { areCut: Promise.all([response, socket].map(closed)) }
}

/** Resolves on a close with or without an error. */
function closed(stream: { readonly closed: boolean; once(event: 'close', done: () => void): unknown }): Promise<void> {
  return new Promise((resolve) => {
    if (stream.closed) resolve()
    else stream.once('close', resolve)
  })
}

/** Asserts that another agent can get the names and ports at once. */
async function areFree({ urls }: { urls: readonly string[] }): Promise<void> {
  const { agents, ca, authtoken } = platform
  const agent = await ownDriver.connect({ server: agents, ca, authtoken })
  for (const url of urls) {
    const { protocol, hostname, host } = new URL(url)
    const asked = protocol === 'tcp:' ? { proto: 'tcp' as const, remote_addr: host } : { domain: hostname }
    const tunnel = await agent.open({ addr: 1, ...asked })
    assert.equal(tunnel.url, url)
  }
  await agent.close()
  await sessionsOnline(platform, 0)
}

describe('an agent', () => {
  test('that is killed leaves nothing behind, and a new one gets its name', async (t) => {
    const agent = await startFull(t)
    const first = await allOnline()
    const { areCut } = await visitors(t, first)
    agent.kill('SIGKILL')
    await sessionsOnline(platform, 0)
    await areCut
    await assertNobodyOnline(platform)
    await assert.rejects(once(connect(portOf(first.tcp), '127.0.0.1'), 'connect'), { code: 'ECONNREFUSED' })
    await areFree(first)

    const again = await startFull(t)
    const second = await allOnline()
    // Another process is another session.
    assert.notEqual(second.sessions[0].id, first.sessions[0].id)
    assert.equal((await visit(second.web, platform)).text, 'web')
    agent.kill('SIGKILL')
    again.kill('SIGKILL')
    await sessionsOnline(platform, 0)
  })

  test('that freezes is given up, and comes back as the same session when it thaws', async (t) => {
    const agent = await startFull(t)
    const before = await allOnline()
    const { areCut } = await visitors(t, before)
    agent.kill('SIGSTOP')
    await sessionsOnline(platform, 0, DEAD_MS)
    await areCut
    await assertNobodyOnline(platform)
    await areFree(before)
    agent.kill('SIGCONT')
    const back = await allOnline()
    assert.deepEqual([back.sessions, back.tunnels], [before.sessions, before.tunnels])
    assert.equal((await visit(before.web, platform)).text, 'web')
    assert.equal(await exchange(await dialTcp(before.tcp), 'bytes'), 'bytes')
    agent.kill('SIGKILL')
    await sessionsOnline(platform, 0)
    await assertNobodyOnline(platform)
  })

  test('that freezes loses its addresses to one that asks for them, long before it would be given up', async (t) => {
    const { agents: server, ca, caFile, authtoken } = platform
    const web = await httpUpstream(t, (_, response) => response.end('successor'))
    const bytes = await tcpUpstream(t)
    // The usual heartbeats: 25 seconds until it is given up.
    const frozen = await startAgent(t, {
      ...{ server, caFile, authtoken },
      tunnels: {
        web: { addr: 1, domain: 'frozen.example.com' },
        bytes: { proto: 'tcp', addr: 1 },
        secure: { proto: 'tls', addr: 1, domain: 'secure.example.com' },
      },
    })
    const { tunnels, sessions } = await until('three tunnels', async () => {
      const now = await online(platform)
      return now.tunnels.length === 3 && now
    })
    const urls: string[] = tunnels.map(({ public_url }) => public_url)
    const [tcp = assert.fail()] = urls.filter((url) => url.startsWith('tcp:'))
    const agent = await ownDriver.connect({ server, ca, authtoken })
    t.after(() => agent.close())
    // As long as it is alive, it keeps its addresses.
    await assert.rejects(agent.open({ addr: web.address, domain: 'frozen.example.com' }), /already online/)
    frozen.kill('SIGSTOP')
    const began = performance.now()
    const https = await agent.open({ addr: web.address, domain: 'frozen.example.com' })
    assert.ok(performance.now() - began < MAKE_WAY_MS, String(performance.now() - began))
    // Its other addresses are free as well.
    const others = await Promise.all([
      agent.open({ proto: 'tcp', addr: bytes.address, remote_addr: new URL(tcp).host }),
      agent.open({ proto: 'tls', addr: bytes.address, domain: 'secure.example.com' }),
    ])
    assert.deepEqual([https, ...others].map(({ url }) => url).sort(), urls.sort())
    assert.equal((await visit(https.url, platform)).text, 'successor')
    assert.equal(await exchange(await dialTcp(tcp), 'bytes'), 'bytes')
    const now = await online(platform)
    assert.equal(now.sessions.length, 1)
    assert.notEqual(now.sessions[0].id, sessions[0].id)
    // When it thaws, it finds its addresses taken by an agent that is alive.
    frozen.kill('SIGCONT')
    await sessionsOnline(platform, 2)
    await frozen.says(/already online/)
    assert.equal((await visit(https.url, platform)).text, 'successor')
    frozen.kill('SIGKILL')
    await agent.close()
    await sessionsOnline(platform, 0)
    await assertNobodyOnline(platform)
  })

  for (const direction of ['to server', 'to agent'] as const) {
    test(`whose link loses everything that goes ${direction} comes back as the same session`, async (t) => {
      const gate = await openOneWayGate(t, portOf(platform.agents))
      const agent = await startFull(t, `127.0.0.1:${gate.port}`)
      const before = await allOnline()
      const { areCut } = await visitors(t, before)
      gate.lose(direction)
      await agent.says(/"connected again"/)
      await areCut
      const back = await allOnline()
      assert.deepEqual([back.sessions, back.tunnels], [before.sessions, before.tunnels])
      assert.equal((await visit(before.web, platform)).text, 'web')
      assert.equal(await exchange(await dialTcp(before.tcp), 'bytes'), 'bytes')
      agent.kill('SIGKILL')
      await sessionsOnline(platform, 0)
      await assertNobodyOnline(platform)
    })
  }

  test('that is frozen makes a command time out, and no other agent gets the command', async (t) => {
    const { agents: server, caFile, authtoken, admin } = platform
    const reported: string[] = []
    const other = await ownDriver.connect({
      ...{ server, ca: platform.ca, authtoken, metadata: 'the other one' },
      commands: { stop: () => void reported.push('stop') },
    })
    t.after(() => other.close())
    const tunnels = { web: { addr: 1 } }
    const agent = await startAgent(t, { server, caFile, authtoken, metadata: 'frozen', tunnels })
    const { sessions } = await sessionsOnline(platform, 2)
    const { id } = sessions.find(({ metadata }) => metadata === 'frozen')
    agent.kill('SIGSTOP')
    // D44: ten seconds.
    await admin.refused('ERR_COMMAND_TIMEOUT', 'POST', `/tunnel_sessions/${id}/stop`)
    assert.deepEqual(reported, [])
    agent.kill('SIGKILL')
    await sessionsOnline(platform, 1)
  })
})

describe('a server', () => {
  /** A server process whose agent keeps its address. */
  async function startServer(t: TestContext, given: Readonly<Record<string, string>> = {}) {
    const dataDir = await mkdtemp(join(tmpdir(), 'postern-test-'))
    t.after(() => rm(dataDir, { recursive: true, force: true }))
    const key = 'test_api_key_of_the_first_admin_0001'
    const authtoken = 'test_authtoken_of_the_first_admin_01'
    const env = { POSTERN_BOOTSTRAP_API_KEY: key, POSTERN_BOOTSTRAP_AUTHTOKEN: authtoken }
    const range = await tcpRange(20)
    const flags = {
      ...range.flags,
      'agent-listen': `127.0.0.1:${await portToKeep()}`,
      'https-listen': `127.0.0.1:${await portToKeep()}`,
      'http-listen': `127.0.0.1:${await portToKeep()}`,
      ...given,
    }
    const server = await serve({ dataDir, env, flags })
    const again = () => serve({ dataDir, env, flags })
    const ca = await readFile(join(dataDir, 'ca.pem'), 'utf8')
    const lost = Promise.withResolvers<void>()
    const agent = await ownDriver.connect({
      ...{ server: server.agents, ca, authtoken, onLost: lost.resolve },
      heartbeat: { everyS: HEARTBEAT_S, toleranceS: HEARTBEAT_S },
    })
    t.after(() => agent.close())
    const web = await httpUpstream(t, (_, response) => response.end('web'))
    const bytes = await tcpUpstream(t)
    const https = await agent.open({ addr: web.address })
    const tcp = await agent.open({ proto: 'tcp', addr: bytes.address })
    const watch = ({ url, metricsUrl }: { url: string; metricsUrl: string }) => ({
      admin: new ApiClient(url, key),
      metricsUrl,
    })
    const areServed = async (): Promise<void> => {
      assert.equal((await visit(https.url, { ca })).text, 'web')
      assert.equal(await exchange(await dialTcp(tcp.url), 'bytes'), 'bytes')
    }
    await areServed()
    return { server, again, watch, areServed, lost: lost.promise }
  }

  const twoTunnels = (watched: { admin: ApiClient; metricsUrl: string }, limitMs: number) =>
    until(
      'two tunnels',
      async () => {
        const now = await online(watched)
        return now.tunnels.length === 2 && now
      },
      { limitMs },
    )

  const ids = (all: readonly { id: string }[]): string[] => all.map(({ id }) => id)

  test('that is killed and started again has the same sessions and addresses', async (t) => {
    const { server, again, watch, areServed } = await startServer(t)
    const before = await online(watch(server))
    server.kill('SIGKILL')
    await server.ended
    const next = await again()
    t.after(() => next.stop())
    const after = await twoTunnels(watch(next), 30_000)
    assert.deepEqual(ids(after.sessions), ids(before.sessions))
    assert.deepEqual(ids(after.tunnels), ids(before.tunnels))
    assert.deepEqual(
      after.tunnels.map(({ public_url }) => public_url),
      before.tunnels.map(({ public_url }) => public_url),
    )
    await areServed()
  })

  test('that freezes is given up by its agent, which is served again when it thaws', async (t) => {
    // One process: a signal stops only the process that it is sent to, which must be the one that serves.
    const { server, watch, areServed, lost } = await startServer(t, { workers: '0' })
    t.after(() => server.stop())
    const before = await online(watch(server))
    server.kill('SIGSTOP')
    await lost
    server.kill('SIGCONT')
    await until(
      'it is served again',
      () =>
        areServed().then(
          () => true,
          () => false,
        ),
      { limitMs: 30_000 },
    )
    const after = await twoTunnels(watch(server), 30_000)
    assert.deepEqual([ids(after.sessions), ids(after.tunnels)], [ids(before.sessions), ids(before.tunnels)])
  })

  test('that was frozen for longer than an agent may be silent keeps its sessions', async (t) => {
    const dataDir = await mkdtemp(join(tmpdir(), 'postern-test-'))
    t.after(() => rm(dataDir, { recursive: true, force: true }))
    const authtoken = 'test_authtoken_of_the_first_admin_01'
    // One process: a signal stops only the process that it is sent to, which must be the one that serves.
    const server = await serve({
      dataDir,
      env: { POSTERN_BOOTSTRAP_AUTHTOKEN: authtoken },
      flags: { workers: '0' },
    })
    t.after(() => server.stop())
    // The agents wait longer for the server than it does for them; one sends heartbeats, the other only answers them.
    const announced = { heartbeatIntervalMs: HEARTBEAT_S * 1000, heartbeatToleranceMs: HEARTBEAT_S * 1000 }
    const agents = [true, false].map((isTalkative) => new TestAgent({ port: portOf(server.agents), isTalkative }))
    for (const agent of agents) {
      const welcome = await agent.authenticate({ authtoken: new Secret(authtoken), ...announced })
      assert.ok(!('ngrok' in welcome))
    }
    for (let i = 0; i < 2; i++) {
      server.kill('SIGSTOP')
      await delay(3 * HEARTBEAT_S * 1000)
      server.kill('SIGCONT')
      // Time enough for the server to give them up.
      await delay(HEARTBEAT_S * 1000)
      for (const agent of agents) {
        assert.equal(agent.mux.isClosed, false)
        assert.ok('url' in (await agent.bind()))
      }
    }
    assert.doesNotMatch(server.out(), /agent offline/)
    for (const agent of agents) await agent.leave()
  })
})
