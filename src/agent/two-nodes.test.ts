/** An agent with pooled tunnels, whose server has several nodes. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, before, describe, test } from 'node:test'
import { type TlsIdentity, tlsIdentity } from '../../test/support/tls-identity.ts'
import { errorText } from '../link/wire/messages/error-text.ts'
import { streamTypes } from '../link/wire/stream-types.ts'
import type { AgentOptions } from './agent.ts'
import { readAll, testAgent, testPlan, until } from './testing/test-agent.ts'
import { TestServer } from './testing/test-server.ts'
import type { AgentTunnelPlan } from './tunnel.ts'

let identity: TlsIdentity
before(async () => {
  identity = await tlsIdentity()
})
const closing: (() => unknown)[] = []
after(async () => {
  for (const close of closing.reverse()) await close()
})

const at = ({ port }: TestServer): string => `127.0.0.1:${port}`

/** Nodes that know of each other, and give sessions ids that differ. */
async function nodes(count: number): Promise<TestServer[]> {
  const servers: TestServer[] = []
  for (let i = 1; i <= count; i++) {
    const testServer = await TestServer.start({ ...identity, firstId: i * 1000 })
    const nodeId = `nd_${i}`
    testServer.rules.auth = ({ notAt }) => (notAt === nodeId ? errorText('Here already.', 'ERR_NGROK_108') : '')
    servers.push(testServer)
    closing.push(() => testServer.close())
  }
  for (const [i, testServer] of servers.entries()) {
    const others = servers.filter((other) => other !== testServer)
    testServer.rules.node = { nodeId: `nd_${i + 1}`, nodeAddresses: others.map(at) }
  }
  return servers
}

const pooled = (given: Partial<AgentTunnelPlan> = {}): AgentTunnelPlan =>
  testPlan({ asks: { proto: 'https', opts: {}, isPooled: true }, ...given })

async function agentAt(first: TestServer, options: Partial<AgentOptions> = {}) {
  const made = testAgent({ server: { host: '127.0.0.1', port: first.port }, ca: identity.ca, ...options })
  closing.push(() => made.agent.close())
  await made.agent.start()
  return made
}

const open = (testServer: TestServer) => testServer.sessions.filter(({ mux }) => !mux.isClosed)
const isBoundAt = (testServer: TestServer): boolean =>
  open(testServer).some(({ binds, unbound }) => binds.length > unbound.length)

/** Runs pending work and timers until the condition holds. */
async function settled(timers: { pass(ms: number): void }, isTrue: () => boolean): Promise<void> {
  for (let turn = 0; !isTrue(); turn++) {
    if (turn % 200 === 0) timers.pass(1000)
    await new Promise((resolve) => setImmediate(resolve))
  }
}

describe('a pooled tunnel', () => {
  test('is bound at a second node too, under the same address and with a session of its own', async () => {
    const [first, second] = (await nodes(2)) as [TestServer, TestServer]
    const { agent, events, nextEvent } = await agentAt(first)
    const web = await agent.open(pooled())
    await nextEvent('second-online')
    await until(() => isBoundAt(second))
    const [here, there] = [first.latest, second.latest]
    assert.deepEqual([there.auth.clientId, there.auth.notAt, here.auth.notAt], ['', 'nd_1', ''])
    const [bind] = there.binds
    assert.deepEqual([bind?.id, bind?.token.reveal(), bind?.poolingEnabled], ['', '', true])
    assert.match(web.url, new RegExp(`//${String(bind?.opts.Hostname)}$`))
    assert.equal(await readAll(second.visit(second.lastId)), 'served')
    assert.equal(await readAll(first.visit(web.id)), 'served')
    assert.equal(events.filter(({ type }) => type === 'online').length, 1)
    assert.equal(events.filter(({ type }) => type === 'tunnel-online').length, 1)
    await agent.close()
    await until(() => first.connections + second.connections === 0)
    assert.deepEqual([here.unbound.length, there.unbound.length], [1, 1])
  })

  test('stays at one node if its address is not pooled, or if one connection is the limit', async () => {
    const [first, second] = (await nodes(2)) as [TestServer, TestServer]
    for (const [plan, connections] of [
      [testPlan(), 'auto'],
      [pooled(), 1],
    ] as const) {
      const { agent, timers } = await agentAt(first, { connections })
      await agent.open(plan)
      timers.pass(60_000)
      await first.command(streamTypes.restart)
      assert.equal(second.sessions.length, 0)
      await agent.close()
    }
  })

  test('is bound at a second node once there is one, and leaves it when it is gone from the list', async () => {
    const [first, second] = (await nodes(2)) as [TestServer, TestServer]
    const nodeId = first.rules.node?.nodeId ?? ''
    first.rules.node = { nodeId, nodeAddresses: [] }
    const { agent, nextEvent } = await agentAt(first)
    const target = { accept: (connection: NodeJS.ReadWriteStream) => void connection.pipe(connection) }
    await agent.open(pooled({ target }))
    await first.command(streamTypes.restart)
    assert.equal(second.sessions.length, 0)
    first.tellNodes([at(second)])
    await nextEvent('second-online')
    await until(() => isBoundAt(second))
    const visitor = second.visit(second.lastId)
    visitor.write('before')
    assert.equal(String((await once(visitor, 'data'))[0]), 'before')
    first.tellNodes([])
    await nextEvent('second-offline')
    await until(() => second.latest.unbound.length === 1)
    visitor.write('after')
    assert.equal(String((await once(visitor, 'data'))[0]), 'after')
    visitor.end()
    assert.equal(await second.latest.closed, undefined)
  })

  test('is online while one of its nodes is, and the other half comes back at a different node', async () => {
    const [first, second, third] = (await nodes(3)) as [TestServer, TestServer, TestServer]
    const { agent, timers, events, nextEvent } = await agentAt(first)
    const web = await agent.open(pooled())
    await nextEvent('second-online')
    const [half, free] = second.sessions.length > 0 ? [second, third] : [third, second]
    await until(() => isBoundAt(half))
    free.knows(first)
    await first.close()
    // The first half goes to the node that has none yet.
    await settled(timers, () => isBoundAt(free))
    assert.ok(web.isOnline && agent.isOnline)
    assert.equal(free.latest.auth.clientId, 'ts_1001')
    assert.equal(half.sessions.length, 1)
    assert.equal(await readAll(half.visit(half.lastId)), 'served')
    assert.equal(await readAll(free.visit(web.id)), 'served')
    assert.ok(!events.some(({ type }) => type === 'offline'))
    await nextEvent('moved')
  })

  test('moves its second half elsewhere when the first comes to its node', async () => {
    const [first, second, third] = (await nodes(3)) as [TestServer, TestServer, TestServer]
    const { agent, timers, nextEvent } = await agentAt(first)
    await agent.open(pooled())
    await nextEvent('second-online')
    const [half, free] = second.sessions.length > 0 ? [second, third] : [third, second]
    await until(() => isBoundAt(half))
    const session = half.latest
    half.knows(first)
    first.rules.auth = () => errorText('Shutting down.', 'ERR_NGROK_803')
    first.move(first.latest, [at(half)])
    await nextEvent('moved')
    await settled(timers, () => isBoundAt(free))
    assert.equal(await session.closed, undefined)
    assert.deepEqual([open(first).length, open(half).length, open(free).length], [0, 1, 1])
  })

  test('leaves a second node that stops even if no other accepts it, and comes back when one does', async () => {
    const [first, second] = (await nodes(2)) as [TestServer, TestServer]
    const { agent, timers, events, nextEvent } = await agentAt(first)
    const web = await agent.open(pooled())
    await nextEvent('second-online')
    await until(() => isBoundAt(second))
    const session = second.latest
    second.move(session, [at(first)])
    assert.equal(await session.closed, undefined)
    await nextEvent('second-offline')
    assert.ok(web.isOnline && !events.some(({ type }) => type === 'offline'))
    await settled(timers, () => isBoundAt(second))
    assert.notEqual(second.latest, session)
  })

  test('is reported offline when both halves are', async () => {
    const [first, second] = (await nodes(2)) as [TestServer, TestServer]
    const { agent, timers, events, nextEvent } = await agentAt(first)
    const web = await agent.open(pooled())
    await nextEvent('second-online')
    await until(() => isBoundAt(second) && web.second.isOnline)
    first.rules.auth = () => errorText('Shutting down.', 'ERR_NGROK_803')
    second.rules.auth = first.rules.auth
    first.cut()
    await until(() => !web.main.isOnline)
    assert.ok(!events.some(({ type }) => type === 'offline'))
    second.cut()
    await nextEvent('offline')
    assert.ok(!web.isOnline && !agent.isOnline)
    delete first.rules.auth
    delete second.rules.auth
    await settled(timers, () => events.filter(({ type }) => type === 'online').length === 2)
  })

  test('is stopped as a whole at the first half, but requested again if only the second was stopped', async () => {
    const [first, second] = (await nodes(2)) as [TestServer, TestServer]
    const { agent, timers, events, nextEvent } = await agentAt(first)
    const web = await agent.open(pooled())
    await nextEvent('second-online')
    await until(() => web.second.isOnline)
    second.stopTunnel(second.lastId, 'not here')
    await until(() => !web.second.isOnline)
    assert.ok(web.isOnline && !events.some(({ type }) => type === 'tunnel-stopped'))
    await settled(timers, () => web.second.isOnline)
    assert.deepEqual(
      second.latest.binds.map(({ id }) => id),
      ['', ''],
    )
    first.stopTunnel(web.id, 'over')
    await nextEvent('tunnel-stopped')
    assert.equal(agent.tunnels.size, 0)
    await until(() => second.latest.unbound.length > 0)
  })

  test('and commands reach the agent through either half', async () => {
    const [first, second] = (await nodes(2)) as [TestServer, TestServer]
    const { agent, nextEvent } = await agentAt(first, {
      commands: {
        restart: { unsupported: '', run: () => ({}) },
        stop: { unsupported: '', run: () => ({}) },
        update: { unsupported: 'no', run: () => ({}) },
      },
    })
    await agent.open(pooled())
    await nextEvent('second-online')
    await second.session(1)
    assert.equal(await first.command(streamTypes.stop), '')
    assert.equal((await nextEvent('command')).name, 'stop')
    assert.equal(await second.command(streamTypes.restart), '')
    assert.equal((await nextEvent('command')).name, 'restart')
  })
})

test('the connections that an agent may have are shared by its two sessions', async () => {
  const [first, second] = (await nodes(2)) as [TestServer, TestServer]
  for (const [i, testServer] of [first, second].entries()) {
    let planes = 0
    testServer.rules.plane = () => ({ planeId: `w${i}${planes++}`, planeCount: 4 })
    testServer.rules.node = { nodeId: `nd_${i + 1}`, nodeAddresses: [] }
  }
  const { agent, timers } = await agentAt(first, { connections: 3 })
  await agent.open(pooled())
  await settled(timers, () => open(first).length === 3)
  first.tellNodes([at(second)])
  await settled(timers, () => isBoundAt(second) && open(first).length === 2)
  timers.pass(600_000)
  await second.command(streamTypes.restart)
  assert.deepEqual([open(first).length, open(second).length], [2, 1])
})
