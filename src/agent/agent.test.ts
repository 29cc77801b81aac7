import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { portToKeep } from '../../test/support/free-port.ts'
import { type TlsIdentity, tlsIdentity } from '../../test/support/tls-identity.ts'
import type { AgentOptions } from './agent.ts'
import { AgentFault } from './agent-fault.ts'
import { readAll, testAgent, testPlan, until } from './testing/test-agent.ts'
import { TestServer, type TestServerRules } from './testing/test-server.ts'

let identity: TlsIdentity
before(async () => {
  identity = await tlsIdentity()
})
const closing: (() => unknown)[] = []
after(async () => {
  for (const close of closing.reverse()) await close()
})

async function openServer(rules: TestServerRules = {}, port = 0): Promise<TestServer> {
  const testServer = await TestServer.start({ ...identity, rules, port })
  closing.push(() => testServer.close().catch(() => {}))
  return testServer
}

function agentOf({ port }: { port: number }, options: Partial<AgentOptions> = {}) {
  const made = testAgent({ server: { host: '127.0.0.1', port }, ca: identity.ca, ...options })
  closing.push(() => made.agent.close())
  return made
}

describe('the first connection', () => {
  test('introduces the agent', async () => {
    const testServer = await openServer()
    const { agent, nextEvent } = agentOf(testServer, { metadata: 'mine' })
    await agent.start()
    const { auth } = testServer.latest
    assert.deepEqual(auth.versions, ['3', '2'])
    assert.equal(auth.authtoken.reveal(), 'token')
    assert.equal(auth.userAgent, 'postern-agent/1.2.3')
    assert.equal(auth.metadata, 'mine')
    assert.equal(auth.clientId, '')
    assert.ok(auth.windowBytes > 256 * 1024)
    assert.deepEqual([auth.heartbeatIntervalMs, auth.heartbeatToleranceMs], [10_000, 15_000])
    const { session, region, serverVersion, isResumed } = await nextEvent('online')
    assert.deepEqual([session, region, serverVersion, isResumed], ['ts_1', 'test', '9.9.9', false])
  })

  const refused = 'The authtoken is not known.\n\nERR_NGROK_107\n'
  test('fails when the server refuses the authtoken, patient or not', async () => {
    const testServer = await openServer({ auth: () => refused })
    for (const patient of [true, false]) {
      const { agent } = agentOf(testServer)
      await assert.rejects(agent.start({ patient }), { code: 'refused', message: 'The authtoken is not known.' })
    }
    assert.equal(testServer.connections, 0)
  })

  test('is retried by a patient agent while the server is unreachable or busy', async () => {
    const testServer = await openServer({ auth: () => 'Shutting down.\n\nERR_NGROK_803\n' })
    const { agent, timers, nextEvent } = agentOf(testServer)
    const started = agent.start({ patient: true })
    const { fault, retryMs } = await nextEvent('offline')
    assert.equal(fault.code, 'refused')
    assert.ok(retryMs <= 500, 'soon, as for a server that is away')
    delete testServer.rules.auth
    timers.pass(60_000)
    await started
  })

  const faults: [name: string, given: () => Partial<AgentOptions>, code: string, says: RegExp][] = [
    ['nobody listens', () => ({ server: { host: '127.0.0.1', port: 1 } }), 'unreachable', /^nothing listens at 127/],
    [
      'the host does not exist',
      () => ({ server: { host: 'nowhere.invalid', port: 1 } }),
      'unreachable',
      /^there is no host called nowhere\.invalid|^nowhere\.invalid cannot be resolved/,
    ],
    [
      'its CA is not known',
      () => ({ ca: undefined }),
      'untrusted',
      /not signed by a CA that this machine trusts; give the CA/,
    ],
  ]
  for (const [name, given, code, says] of faults) {
    test(`explains that ${name}`, async () => {
      const testServer = await openServer()
      const { agent } = agentOf(testServer, given())
      await assert.rejects(agent.start(), (error) => {
        assert.ok(error instanceof AgentFault)
        assert.equal(error.code, code)
        assert.match(error.message, says)
        return true
      })
    })
  }

  test('explains that the certificate is for another name', async () => {
    const other = await tlsIdentity(['other.example'])
    const testServer = await TestServer.start(other)
    closing.push(() => testServer.close())
    const { agent } = agentOf(testServer, { ca: other.ca, server: { host: 'localhost', port: testServer.port } })
    await assert.rejects(
      agent.start(),
      /is for other names \(DNS:other\.example.*\); use one of them as `server`, or add localhost to `--agent-names` of the server, or to its agent ingresses$/,
    )
  })

  test('explains that the other end does not speak TLS', async () => {
    const plain = createServer((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'))
    plain.listen(0, '127.0.0.1')
    await once(plain, 'listening')
    closing.push(() => plain.close())
    const address = plain.address()
    assert.ok(typeof address === 'object' && address)
    const { agent } = agentOf(address)
    await assert.rejects(agent.start(), /does not speak TLS like a Postern server/)
  })

  test('is aborted when the agent is closed', async () => {
    const mute = createServer((socket) => socket.resume())
    mute.listen(0, '127.0.0.1')
    await once(mute, 'listening')
    closing.push(() => mute.close())
    const address = mute.address()
    assert.ok(typeof address === 'object' && address)
    const { agent } = agentOf(address)
    const started = agent.start()
    started.catch(() => {})
    await once(mute, 'connection')
    await agent.close()
    await assert.rejects(started, { code: 'closed' })
  })
})

describe('after the connection broke', () => {
  test('the same session and the same addresses come back', async () => {
    const testServer = await openServer()
    const { agent, timers, nextEvent } = agentOf(testServer)
    await agent.start()
    const web = await agent.open(testPlan())
    const ssh = await agent.open(testPlan({ name: 'ssh', asks: { proto: 'tcp', opts: {} } }))
    const labelled = await agent.open(testPlan({ asks: { labels: { app: 'x' } } }))
    const urls = [web.url, ssh.url]
    await nextEvent('online')
    testServer.cut()
    const { fault, retryMs } = await nextEvent('offline')
    assert.deepEqual([fault.code, fault.message], ['lost', 'the connection ended'])
    assert.ok(retryMs <= 500)
    assert.ok(!web.isOnline)
    timers.pass(retryMs)
    const { isResumed, session } = await nextEvent('online')
    assert.deepEqual([isResumed, session], [true, 'ts_1'])
    await until(() => web.isOnline && ssh.isOnline && labelled.isOnline)
    assert.deepEqual([web.url, ssh.url], urls)
    const { auth, binds, labels } = await testServer.session(2)
    assert.deepEqual([auth.clientId, auth.cookie.reveal()], ['ts_1', 'cookie_1'])
    assert.deepEqual(
      binds.map(({ id, proto, token }) => [id, proto, token.reveal()]),
      [web, ssh].map(({ id }, i) => [id, ['https', 'tcp'][i], `token_of_${id}`]),
    )
    assert.equal(binds[0]?.opts.Hostname, new URL(web.url).hostname)
    assert.equal(labels[0]?.labels.app, 'x')
    assert.equal(await readAll(testServer.visit(web.id)), 'served')
  })

  test('a server that has forgotten the session starts a new one, and the addresses stay', async () => {
    const testServer = await openServer({}, await portToKeep())
    const { agent, timers, nextEvent } = agentOf(testServer)
    await agent.start()
    const web = await agent.open(testPlan())
    const { url } = web
    const { port } = testServer
    await nextEvent('online')
    await testServer.close()
    const { retryMs } = await nextEvent('offline')
    const next = await openServer({}, port)
    timers.pass(retryMs)
    assert.equal((await nextEvent('online')).isResumed, false)
    await until(() => web.isOnline)
    assert.equal(web.url, url)
    assert.equal(next.latest.binds[0]?.token.reveal(), `token_of_${web.id}`)
  })

  test('a server that is down for an hour is retried with growing pauses, and nothing piles up', async () => {
    const testServer = await openServer({}, await portToKeep())
    const { agent, timers, nextEvent, events } = agentOf(testServer)
    await agent.start()
    await agent.open(testPlan())
    await nextEvent('online')
    const { port } = testServer
    await testServer.close()
    const waits: number[] = []
    for (let away = 0; away < 3_600_000; ) {
      const { fault, retryMs } = await nextEvent('offline')
      assert.match(fault.message, /the connection ended|nothing listens at/)
      waits.push(retryMs)
      away += retryMs
      // Only the retry and the check for sleep and network changes.
      assert.equal(timers.waiting, 2)
      timers.pass(retryMs)
    }
    assert.deepEqual(waits.slice(0, 8), [375, 750, 1500, 3000, 6000, 12_000, 22_500, 22_500])
    assert.ok(waits.length > 100 && waits.length < 250)
    assert.ok(events.length < 300)
    await nextEvent('offline')
    await openServer({}, port)
    timers.pass(30_000)
    await nextEvent('online')
  })

  test('a refused agent retries more slowly, and comes back when the server accepts it again', async () => {
    const testServer = await openServer()
    const { agent, timers, nextEvent } = agentOf(testServer)
    await agent.start()
    await nextEvent('online')
    testServer.rules.auth = () => 'The credential was revoked.\n\nERR_NGROK_300\n'
    testServer.cut()
    timers.pass((await nextEvent('offline')).retryMs)
    const { fault, retryMs } = await nextEvent('offline')
    assert.equal(fault.message, 'The credential was revoked.')
    assert.ok(retryMs >= 7500)
    delete testServer.rules.auth
    timers.pass(retryMs)
    await nextEvent('online')
  })

  test('an address that is not given back is requested again, and the others stay', async () => {
    const testServer = await openServer()
    const { agent, timers, nextEvent } = agentOf(testServer)
    await agent.start()
    const [one, two] = [await agent.open(testPlan()), await agent.open(testPlan({ name: 'two' }))]
    await nextEvent('online')
    testServer.rules.bind = ({ id }) => (id === one.id ? 'The name is taken.\n\nERR_NGROK_334\n' : '')
    testServer.cut()
    timers.pass((await nextEvent('offline')).retryMs)
    const { tunnel, fault } = await nextEvent('tunnel-refused')
    assert.equal(tunnel, one)
    assert.deepEqual([fault.message, fault.serverCode], ['The name is taken.', 'ERR_NGROK_334'])
    await until(() => two.isOnline)
    delete testServer.rules.bind
    timers.pass(15_000)
    await until(() => one.isOnline)
  })

  test('repeated requests for an address end with the session', async () => {
    const testServer = await openServer()
    const { agent, timers, nextEvent } = agentOf(testServer)
    await agent.start()
    await agent.open(testPlan())
    await nextEvent('online')
    testServer.rules.bind = () => 'The name is taken.'
    testServer.cut()
    timers.pass((await nextEvent('offline')).retryMs)
    await nextEvent('tunnel-refused')
    assert.equal(timers.waiting, 2)
    testServer.cut()
    await nextEvent('offline')
    // The retry, and the check for sleep and network changes.
    assert.equal(timers.waiting, 2)
  })

  test('two hundred reconnects leave nothing behind', async () => {
    const testServer = await openServer()
    const { agent, timers, nextEvent } = agentOf(testServer)
    await agent.start()
    const web = await agent.open(testPlan())
    for (let i = 0; i < 200; i++) {
      await nextEvent('online')
      await until(() => web.isOnline)
      testServer.cut()
      timers.pass((await nextEvent('offline')).retryMs)
    }
    await nextEvent('online')
    await until(() => web.isOnline)
    assert.equal(testServer.connections, 1)
    assert.equal(timers.waiting, 1)
    assert.equal(web.id, 'tn_2')
  })
})

describe('a machine that slept', () => {
  test('retries at once when it was waiting', async () => {
    const testServer = await openServer()
    const { agent, timers, nextEvent } = agentOf(testServer)
    await agent.start()
    await nextEvent('online')
    testServer.rules.auth = () => 'Not you.\n\nERR_NGROK_107\n'
    testServer.cut()
    timers.pass((await nextEvent('offline')).retryMs)
    for (let i = 0; i < 3; i++) timers.pass((await nextEvent('offline')).retryMs)
    const { retryMs } = await nextEvent('offline')
    assert.ok(retryMs > 30_000)
    delete testServer.rules.auth
    timers.sleep(3_600_000)
    timers.pass(5000)
    await nextEvent('online')
  })

  test('pings the server, and stays connected when it answers', async () => {
    const testServer = await openServer()
    const { agent, timers, nextEvent, events } = agentOf(testServer)
    await agent.start()
    await nextEvent('online')
    const { mux } = testServer.latest
    const heard = mux.bytesIn
    timers.sleep(3_600_000)
    timers.pass(5000)
    await until(() => mux.bytesIn > heard)
    assert.equal(await readAll(testServer.visit((await agent.open(testPlan())).id)), 'served')
    assert.ok(!events.some(({ type }) => type === 'offline'))
  })

  test('reconnects when the server does not answer the ping', async (t) => {
    const testServer = await openServer()
    const { agent, timers, nextEvent } = agentOf(testServer)
    await agent.start()
    await nextEvent('online')
    testServer.rules.isMute = true
    t.mock.timers.enable({ apis: ['setTimeout'] })
    timers.sleep(3_600_000)
    timers.pass(5000)
    t.mock.timers.tick(3000)
    const { fault } = await nextEvent('offline')
    assert.equal(fault.message, 'the server stopped responding')
  })
})

test('a changed network makes the agent ping its server', async () => {
  const testServer = await openServer()
  const network = { addresses: '10.0.0.1' }
  const { agent, timers, nextEvent } = agentOf(testServer, { addresses: () => network.addresses })
  await agent.start()
  await nextEvent('online')
  const { mux } = testServer.latest
  const heard = mux.bytesIn
  network.addresses = '192.168.1.5'
  timers.pass(5000)
  await until(() => mux.bytesIn > heard)
  // When this later call is answered, the ping has been answered too.
  await agent.open(testPlan())
})

test('a silent server counts as dead after interval and tolerance', async (t) => {
  const testServer = await openServer({ isMute: true })
  const { agent, nextEvent } = agentOf(testServer, { heartbeatIntervalMs: 1000, heartbeatToleranceMs: 500 })
  t.mock.timers.enable({ apis: ['setTimeout'] })
  await agent.start()
  // In small steps: a single long one would count as a standstill of the agent, not of the server.
  for (let ms = 0; ms < 1500; ms++) t.mock.timers.tick(1)
  assert.equal((await nextEvent('offline')).fault.message, 'the server stopped responding')
})
