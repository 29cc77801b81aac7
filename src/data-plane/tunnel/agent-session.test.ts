import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { connect, createServer, type Socket } from 'node:net'
import { after, describe, test } from 'node:test'
import { makeIdentity } from '../../../test/support/make-certificate.ts'
import { Sealer } from '../../lib/secrets/seal.ts'
import { Secret } from '../../lib/secrets/secret.ts'
import type { AuthAnswer } from '../../link/wire/messages/auth.ts'
import { bindRequest, TestAgent, TOKEN } from './testing/raw-agent.ts'
import {
  ok,
  refusedWith,
  TestAgentListener,
  type TestAgentListenerOptions,
  until,
} from './testing/test-agent-listener.ts'
import { listed } from './testing/test-control.ts'

const identity = await makeIdentity()

async function startTestListener(options?: TestAgentListenerOptions, port?: number): Promise<TestAgentListener> {
  const listener = await new TestAgentListener(identity, options).listen(port)
  after(() => listener.close())
  return listener
}

const back = ({ clientId, cookie }: AuthAnswer) => ({ clientId, cookie })

describe('a door that is about to close', () => {
  test('asks agents that support it to move, and counts them until they have left', async () => {
    const listener = await startTestListener()
    const [ours, theirs] = [await listener.online({ canMove: true }), await listener.online()]
    await listener.tunnels.tellToMove()
    await until(() => ours.agent.moves === 1)
    assert.equal(listener.tunnels.moving, 1)
    assert.equal(theirs.agent.moves, 0)
    await ours.agent.leave()
    await until(() => listener.tunnels.moving === 0)
    assert.equal(listener.load.sessions, 1)
  })

  test('sends agents that know of nodes to other nodes, and no others', async () => {
    const listener = await startTestListener({ nodes: { id: 'nd_1', addresses: () => ['a.example.com:7443'] } })
    const ours = await listener.online({ canMove: true, knowsNodes: true })
    const older = await listener.online({ canMove: true })
    const theirs = await listener.online()
    assert.deepEqual([ours.auth.nodeId, ours.auth.nodeAddresses], ['nd_1', ['a.example.com:7443']])
    for (const { auth } of [older, theirs]) assert.deepEqual([auth.nodeId, auth.nodeAddresses], ['', []])
    await listener.tunnels.tellNodes(['b.example.com:7443'])
    await listener.tunnels.tellToMove(['c.example.com:7443'])
    await until(() => ours.agent.nodes.length === 2)
    assert.deepEqual(ours.agent.nodes, [['b.example.com:7443'], ['c.example.com:7443']])
    assert.deepEqual([ours.agent.moves, listener.tunnels.moving], [1, 1])
    for (const { agent } of [older, theirs]) {
      // Its answer comes after the message.
      ok(await agent.bind())
      assert.deepEqual([agent.moves, agent.nodes, agent.visitors], [0, [], []])
    }
  })

  test('refuses an agent that wants its second session at another node', async () => {
    const listener = await startTestListener({ nodes: { id: 'nd_1', addresses: () => ['a.example.com:7443'] } })
    const ours = { canMove: true, knowsNodes: true }
    assert.equal(refusedWith(await listener.agent().authenticate({ ...ours, notAt: 'nd_1' })), 108)
    assert.equal(listener.load.sessions, 0)
    assert.equal((await listener.online({ ...ours, notAt: 'nd_2' })).auth.nodeId, 'nd_1')
    await (await startTestListener()).online({ ...ours, notAt: 'nd_1' })
  })

  test('learns whether an agent that comes back is moving', async () => {
    const asked: boolean[] = []
    const listener = await startTestListener()
    listener.tunnels.returning = async (_id, how) => {
      asked.push(how.isMoving)
      return []
    }
    const { auth } = await listener.online()
    const again = await listener.online({ ...back(auth), isMoving: true })
    await listener.online(back(again.auth))
    assert.deepEqual(asked, [true, false])
  })

  test('hands a tunnel over to another data plane without telling anybody', async () => {
    const listener = await startTestListener()
    const { agent, auth } = await listener.online()
    const { tunnelId } = ok(await agent.bind())
    const [address] = listener.endpoints.addresses
    assert.ok(address)
    listener.registry.handOver(tunnelId)
    listener.registry.handOver(tunnelId)
    assert.equal(listener.load.tunnels, 0)
    assert.equal(listener.registry.liveSession(auth.clientId)?.tunnels.size, 0)
    assert.ok(listener.registry.mayStart(tunnelId, auth.clientId))
  })
})

describe('a session', () => {
  test('keeps its id and its start when its agent comes back after a drop', async () => {
    const clock = { now: 1_000_000_000 }
    const listener = await startTestListener({ now: () => clock.now })
    const { agent, auth } = await listener.online()
    const before = await listed(listener.registry).session(auth.clientId)
    await agent.leave()
    await until(() => listener.load.sessions === 0)
    assert.equal(await listed(listener.registry).session(auth.clientId), undefined)
    clock.now += 3_600_000
    const again = await listener.online(back(auth))
    assert.equal(again.auth.clientId, auth.clientId)
    assert.deepEqual(await listed(listener.registry).session(auth.clientId), before)
    // Each answer brings a new cookie, which works too.
    await again.agent.leave()
    assert.equal((await listener.online(back(again.auth))).auth.clientId, auth.clientId)
  })

  test('keeps its id when the server is another process with the same key', async () => {
    const seal = new Sealer(randomBytes(32))
    const first = await startTestListener({ seal })
    const { auth } = await first.online()
    await first.close()
    const second = await startTestListener({ seal })
    assert.equal((await second.online(back(auth))).auth.clientId, auth.clientId)
  })

  test('is a new one when the agent restarts or the server has another key', async () => {
    const listener = await startTestListener()
    const { auth } = await listener.online()
    assert.notEqual((await listener.online()).auth.clientId, auth.clientId)
    const other = await startTestListener()
    assert.notEqual((await other.online(back(auth))).auth.clientId, auth.clientId)
  })

  test('is a new one, without an error, when the cookie is invalid', async () => {
    const listener = await startTestListener()
    const { auth } = await listener.online()
    for (const cookie of ['', 'x', 'sealed:1:AAAA', '\u{1f36a}'.repeat(100)]) {
      const { auth: other } = await listener.online({ clientId: auth.clientId, cookie: new Secret(cookie) })
      assert.notEqual(other.clientId, auth.clientId)
    }
  })

  test('is not given to another credential that sends its cookie', async () => {
    const listener = await startTestListener()
    const { agent, auth } = await listener.online()
    listener.credentials.all.set('b'.repeat(40), { id: 'cr_other', acl: [] })
    const other = await listener.online({ ...back(auth), authtoken: new Secret('b'.repeat(40)) })
    assert.notEqual(other.auth.clientId, auth.clientId)
    assert.equal(agent.mux.isClosed, false)
  })

  test('replaces its own half-dead connection, and keeps its names', async () => {
    const listener = await startTestListener()
    const { agent: stale, auth } = await listener.online({}, { isAlive: false })
    const bound = ok(await stale.bind({ opts: { Domain: 'app.example.com' } }))
    const { agent } = await listener.online(back(auth))
    await stale.closed
    assert.deepEqual(listener.endpoints.addresses, [])
    const again = ok(await agent.bind({ id: bound.id, opts: bound.opts, token: bound.token }))
    assert.deepEqual([again.id, again.url, again.tunnelId], [bound.id, bound.url, bound.tunnelId])
    assert.deepEqual(listener.registry.counts, { sessions: 1, tunnels: 1, endpoints: 1 })
  })

  test('is not taken over by a further leg, which is a session of its own', async () => {
    const listener = await startTestListener()
    const { agent, auth } = await listener.online()
    const leg = await listener.online({ ...back(auth), leg: 1 })
    assert.notEqual(leg.auth.clientId, auth.clientId)
    assert.equal(agent.mux.isClosed, false)
    assert.equal(listener.load.sessions, 2)
  })

  test('that two connections want goes to the later one, whichever is looked up first', async () => {
    const listener = await startTestListener()
    const { agent: first, auth } = await listener.online()
    await first.leave()
    const agents = Array.from({ length: 5 }, () => listener.agent())
    await Promise.allSettled(agents.map((agent) => agent.authenticate(back(auth))))
    await until(() => agents.filter(({ mux }) => !mux.isClosed).length === 1)
    assert.equal(listener.load.sessions, 1)
    assert.equal((await listed(listener.registry).session(auth.clientId))?.id, auth.clientId)
  })

  test('has none of its names once its connection is lost', async () => {
    const listener = await startTestListener()
    const { agent } = await listener.online()
    ok(await agent.bind())
    ok(await agent.bind({ proto: 'tcp' }))
    ok(await agent.startLabels({ a: 'b' }))
    await agent.leave()
    await until(() => listener.load.sessions === 0)
    assert.deepEqual(listener.registry.counts, { sessions: 0, tunnels: 0, endpoints: 0 })
    assert.deepEqual(listener.endpoints.addresses, [])
  })

  test('that is lost while a name is being opened leaves nothing open', async () => {
    const listener = await startTestListener()
    const { agent } = await listener.online()
    const { promise, resolve } = Promise.withResolvers<void>()
    listener.endpoints.gate = promise
    const binding = agent.bind()
    await until(() => listener.endpoints.asked === 1)
    await agent.leave()
    await assert.rejects(binding)
    await until(() => listener.load.sessions === 0)
    resolve()
    await until(() => listener.endpoints.addresses.length === 0)
    await new Promise(setImmediate)
    assert.deepEqual(listener.endpoints.addresses, [])
    assert.deepEqual(listener.registry.counts, { sessions: 0, tunnels: 0, endpoints: 0 })
  })
})

describe('a dead peer', () => {
  const soon = { heartbeatIntervalMs: 200, heartbeatToleranceMs: 300 }
  const limits = { leastHeartbeatMs: 100 }

  test('that keeps its connection and sends nothing is found within the time that it announced', async () => {
    const listener = await startTestListener({ limits })
    const began = performance.now()
    const { agent } = await listener.online(soon, { isAlive: false })
    await until(() => listener.load.sessions === 0)
    assert.ok(performance.now() - began > 300, String(performance.now() - began))
    assert.match(String(listener.logLines('agent offline')[0]?.reason), /no sign of life/)
    await agent.closed
  })

  test('is not assumed while it answers, for many times that long', async () => {
    const listener = await startTestListener({ limits })
    const { agent } = await listener.online(soon)
    const began = performance.now()
    await until(() => performance.now() - began > 1500)
    assert.equal(agent.mux.isClosed, false)
    assert.equal(listener.load.sessions, 1)
  })

  test('is found when it still sends but receives nothing any more', async () => {
    const listener = await startTestListener({ limits })
    const link = await oneWay(listener.port)
    after(() => link.close())
    const agent = new TestAgent({ port: link.port })
    ok(await agent.authenticate(soon))
    link.cut()
    await until(() => listener.load.sessions === 0)
    assert.match(String(listener.logLines('agent offline')[0]?.reason), /no sign of life/)
  })
})

test('the log names agents that come and go, once each, and no secrets', async () => {
  const listener = await startTestListener()
  const { agent, auth } = await listener.online()
  const bound = ok(await agent.bind({ ...bindRequest, opts: { Auth: 'user:passphrase' } }))
  await agent.leave()
  await until(() => listener.load.sessions === 0)
  for (const event of ['agent online', 'tunnel started', 'agent offline']) {
    assert.equal(listener.logLines(event).length, 1, event)
    assert.equal(listener.logLines(event)[0]?.session, auth.clientId)
  }
  const text = JSON.stringify(listener.logged)
  for (const secret of [TOKEN, auth.cookie.reveal(), bound.token.reveal(), 'passphrase']) {
    assert.ok(!text.includes(secret))
  }
})

test('a session refuses calls when its credential is gone', async () => {
  const listener = await startTestListener()
  const { agent } = await listener.online()
  await until(() => listener.logLines('agent online').length === 1)
  listener.credentials.all.clear()
  assert.equal(refusedWith(await agent.bind()), 300)
  assert.equal(refusedWith(await agent.startLabels({ a: 'b' })), 300)
  listener.credentials.isAway = true
  assert.equal(refusedWith(await agent.bind()), 802)
})

/** A relay to `target` whose return path can be cut. */
async function oneWay(target: number) {
  let isCut = false
  const sockets: Socket[] = []
  const server = createServer((near) => {
    const far = connect({ port: target, host: '127.0.0.1' })
    for (const socket of [near, far]) {
      sockets.push(socket)
      socket.on('error', () => {})
    }
    near.on('data', (chunk) => far.write(chunk))
    far.on('data', (chunk) => {
      if (!isCut) near.write(chunk)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  assert.ok(typeof address === 'object' && address)
  return {
    port: address.port,
    cut() {
      isCut = true
    },
    close() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}
