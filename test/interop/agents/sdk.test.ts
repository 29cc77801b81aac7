/**
 * What only the official SDK can do or request: its short form, its own servers, and its own spelling of guards.
 *
 * It needs a process of its own, since the short form keeps one session for the whole process.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { after, before, describe, type TestContext, test } from 'node:test'
import ngrok from '@ngrok/ngrok'
import { openOneWayGate } from '../../support/one-way-gate.ts'
import { type Platform, startPlatform } from '../../support/platform.ts'
import { until } from '../../support/until.ts'
import { httpUpstream, tcpUpstream } from '../../support/upstream.ts'
import { dialTcp, visit } from '../../support/visitor.ts'
import { refusal, sessionOf, tunnelAt } from './each-agent.ts'
import { closeSession, refusing, type Session, sessionBuilder } from './sdk-driver.ts'

type HttpBuilder = ReturnType<Session['httpEndpoint']>

let platform: Platform
let session: Session
before(async () => {
  platform = await startPlatform({ flags: { 'drain-timeout': '1s' } })
  const { agents: server, ca, authtoken } = platform
  session = await sessionBuilder({ server, ca, authtoken }).connect()
})
after(async () => {
  await closeSession(session)
  await platform.stop()
})

describe('its short form', () => {
  /** The options with which people point it at their own server. */
  const at = () => ({ server_addr: platform.agents, root_cas: platform.caFile, authtoken: platform.authtoken })
  after(() => ngrok.kill())

  test('forwards a port with options, and disconnects by URL', async (t) => {
    const { port } = await httpUpstream(t)
    const listener = await ngrok.forward({
      ...at(),
      addr: port,
      domain: 'short.example.com',
      metadata: 'of the tunnel',
      session_metadata: 'of the session',
      basic_auth: ['user:password'],
      request_header_add: ['x-added:yes'],
      force_new_session: true,
    })
    const url = listener.url() ?? ''
    assert.equal(url, `https://short.example.com:${platform.httpsPort}`)
    assert.equal((await visit(url, platform)).status, 401)
    const authorization = `Basic ${Buffer.from('user:password').toString('base64')}`
    const answer = await visit(url, platform, { headers: { authorization } })
    assert.equal(JSON.parse(answer.text).headers['x-added'], 'yes')
    assert.equal((await tunnelAt(platform, url)).metadata, 'of the tunnel')
    const { tunnel_sessions } = await platform.admin.get('/tunnel_sessions')
    assert.ok(tunnel_sessions.some(({ metadata }: { metadata: string }) => metadata === 'of the session'))
    await ngrok.disconnect(url)
    assert.equal(await tunnelAt(platform, url), undefined)
  })

  test('takes labels, a subdomain and a TCP address', async (t) => {
    const { port } = await httpUpstream(t)
    const labelled = await ngrok.forward({ ...at(), addr: port, labels: ['app:short'], proto: 'labeled' })
    assert.deepEqual(labelled.labels(), { app: 'short' })
    const { tunnels } = await platform.admin.get('/tunnels')
    assert.ok(tunnels.some(({ labels }: { labels?: Record<string, string> }) => labels?.app === 'short'))
    const named = await ngrok.forward({ ...at(), addr: port, domain: 'short.localhost' })
    assert.equal(named.url(), `https://short.localhost:${platform.httpsPort}`)
    const tcp = await ngrok.forward({ ...at(), addr: port, proto: 'tcp' })
    assert.match(tcp.url() ?? '', /^tcp:\/\/localhost:20\d{3}$/)
    await ngrok.disconnect()
  })
})

test('a server of the program is served without a port of its own', async (t) => {
  const server = createServer((request, response) => response.end(`inside ${request.url}`))
  t.after(() => server.close())
  const listener = await session.httpEndpoint().listenAndServe(server)
  assert.equal((await visit(listener.url() ?? '', platform, { path: '/here' })).text, 'inside /here')
  await listener.close()
})

test('a heartbeat shows it the latency', async () => {
  const { agents: server, ca, authtoken } = platform
  const latencies: number[] = []
  const builder = sessionBuilder({ server, ca, authtoken, heartbeat: { everyS: 1, toleranceS: 5 } })
  const watched = await builder.handleHeartbeat((latency) => void latencies.push(latency)).connect()
  await until('a heartbeat was answered', () => latencies.length > 0)
  await closeSession(watched)
})

describe('its limits', () => {
  test('visitors beyond its limit are told to retry, and its session survives', async (t) => {
    const held: ServerResponse[] = []
    const { address } = await httpUpstream(t, (_, response) => void held.push(response))
    const listener = await session.httpEndpoint().listenAndForward(`http://${address}`)
    const { tunnel_session } = await tunnelAt(platform, listener.url() ?? '')
    let refused = 0
    const answers = Array.from({ length: 520 }, async () => {
      const { status, headers } = await visit(listener.url() ?? '', platform)
      if (status !== 200) refused++
      return status === 200 ? 'served' : headers['postern-error-code']
    })
    // The 513th stream would kill it.
    await until('all have come', () => held.length + refused === answers.length)
    assert.ok(held.length > 400 && held.length < 500, `${held.length} at once`)
    for (const response of held) response.end('ok')
    assert.deepEqual(new Set(await Promise.all(answers)), new Set(['served', 'ERR_BACKEND_BUSY']))
    const next = visit(listener.url() ?? '', platform)
    await until('it is served again', () => held.at(-1)?.writableEnded === false)
    held.at(-1)?.end('ok')
    assert.equal((await next).status, 200)
    assert.deepEqual((await tunnelAt(platform, listener.url() ?? '')).tunnel_session, tunnel_session)
    await listener.close()
  })

  test('a listener whose connections are not accepted does not block others', async (t) => {
    const { address } = await httpUpstream(t, (_, response) => response.end('served'))
    const deaf = await session.tcpEndpoint().listen(false)
    const hearing = await session.httpEndpoint().listenAndForward(`http://${address}`)
    const url = new URL(deaf.url() ?? '')
    const sockets = await Promise.all(Array.from({ length: 300 }, () => dialTcp(url.href)))
    for (const socket of sockets) socket.resume().on('end', () => socket.destroy())
    t.after(() => sockets.forEach((socket) => void socket.destroy()))
    // It queues 64 of them for its program; one more would block all its listeners.
    await until('the excess ones are refused', () => sockets.filter((each) => each.closed).length >= 236)
    assert.equal((await visit(hearing.url() ?? '', platform)).text, 'served')
    for (const listener of [deaf, hearing]) await listener.close()
  })
})

describe('its faults', () => {
  const heartbeat = { everyS: 1, toleranceS: 1 }

  /** Starts a separate process with one session and one tunnel, whose address it prints. */
  async function startProcess(t: TestContext, metadata: string) {
    const builder = new URL('sdk-driver.ts', import.meta.url).href
    const { agents: server, ca, authtoken } = platform
    const program = `
      const { sessionBuilder } = await import(${JSON.stringify(builder)})
      const session = await sessionBuilder(${JSON.stringify({ server, ca, authtoken, metadata, heartbeat })}).connect()
      const listener = await session.httpEndpoint().listenAndForward('http://127.0.0.1:1')
      console.log(listener.url())
      setInterval(() => {}, 60_000)`
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    t.after(() => child.kill('SIGKILL'))
    const [url] = (await once(child.stdout.setEncoding('utf8'), 'data')) as [string]
    return { child, url: url.trim(), session: await sessionOf(platform, metadata) }
  }

  const isGone = (id: string) => async () => (await platform.admin.send('GET', `/tunnel_sessions/${id}`)).status === 404

  test('a frozen process loses its session, and comes back as the same one; killed, it is gone', async (t) => {
    const { child, url, session: before } = await startProcess(t, 'of a process')
    child.kill('SIGSTOP')
    await until('the frozen session is gone', isGone(before.id))
    assert.equal(await tunnelAt(platform, url), undefined)
    child.kill('SIGCONT')
    await until('its tunnel is back', () => tunnelAt(platform, url))
    assert.deepEqual(await sessionOf(platform, 'of a process'), before)
    child.kill('SIGKILL')
    await until('the killed session is gone', isGone(before.id))
    assert.equal(await tunnelAt(platform, url), undefined)
  })

  test('the server detects a link that loses everything to the agent, though it still hears the agent', async (t) => {
    const gate = await openOneWayGate(t, Number(platform.agents.split(':')[1]))
    const { ca, authtoken } = platform
    const server = `127.0.0.1:${gate.port}`
    const deaf = await sessionBuilder({ server, ca, authtoken, metadata: 'deaf', heartbeat }).connect()
    // It waits for an answer before its next heartbeat, so a service must keep sending through it.
    const { address } = await tcpUpstream(t, (socket) => {
      const talking = setInterval(() => socket.write('still here'), 50)
      socket.once('close', () => clearInterval(talking))
    })
    const listener = await deaf.tcpEndpoint().listenAndForward(`tcp://${address}`)
    const visitor = await dialTcp(listener.url() ?? '')
    t.after(() => visitor.destroy())
    await once(visitor, 'data')
    const { id } = await sessionOf(platform, 'deaf')
    gate.lose('to agent')
    await until('the session is gone', isGone(id))
    await closeSession(deaf)
  })
})

describe('a bind that requests a guard', () => {
  const policy = JSON.stringify({ inbound: [{ name: 'all', expressions: [], actions: [{ type: 'deny' }] }] })
  const domain = 'guarded.example.com'
  const url = (): string => `https://${domain}:${platform.httpsPort}`
  const start = (build: (builder: HttpBuilder) => HttpBuilder) => {
    const builder = build(session.httpEndpoint().domain(domain))
    return refusing(() => builder.listenAndForward('http://127.0.0.1:1'))
  }

  const refused: [what: string, build: (builder: HttpBuilder) => HttpBuilder, ngrok: number, words: RegExp][] = [
    ['OAuth without an application', (builder) => builder.oauth('google', ['a@example.com']), 365, /none to lend/],
    ['an internal endpoint', (builder) => builder.binding('internal'), 301, /public/],
  ]
  for (const [what, build, number, words] of refused) {
    test(`is refused if it cannot be served: ${what}`, async () => {
      await assert.rejects(start(build), refusal(number, words))
      assert.equal(await tunnelAt(platform, url()), undefined)
    })
  }

  const served: [what: string, build: (builder: HttpBuilder) => HttpBuilder, status: number][] = [
    ['a policy', (builder) => builder.policy(policy), 403],
    ['a traffic policy', (builder) => builder.trafficPolicy(policy), 403],
    ['OAuth', (builder) => builder.oauth('google', null, null, null, 'app', 'hush-hush'), 302],
    // The provider is down, so no visitor is let in.
    ['OIDC', (builder) => builder.oidc('https://127.0.0.1:1', 'app', 'hush-hush'), 502],
  ]
  for (const [what, build, status] of served) {
    test(`is guarded: ${what}`, async () => {
      const listener = await start(build)
      assert.equal((await visit(url(), platform)).status, status)
      await listener.close()
    })
  }
})
