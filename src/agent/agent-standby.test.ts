/** An agent with a connection ready at another node. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type TlsIdentity, tlsIdentity } from '../../test/support/tls-identity.ts'
import type { Begin } from '../link/wire/messages/auth.ts'
import { errorText } from '../link/wire/messages/error-text.ts'
import { streamTypes } from '../link/wire/stream-types.ts'
import type { AgentOptions } from './agent.ts'
import { readAll, testAgent, testPlan, until } from './testing/test-agent.ts'
import { TestServer } from './testing/test-server.ts'

let identity: TlsIdentity
before(async () => {
  identity = await tlsIdentity()
})
const closing: (() => unknown)[] = []
after(async () => {
  for (const close of closing.reverse()) await close()
})

const at = ({ port }: TestServer): string => `127.0.0.1:${port}`

/** Longer than any agent waits before its first standby. */
const SOON_MS = 5000

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

/** An agent that is online at a node, with one tunnel. */
async function onlineAt(first: TestServer, options: Partial<AgentOptions> = {}) {
  const made = testAgent({ server: { host: '127.0.0.1', port: first.port }, ca: identity.ca, ...options })
  closing.push(() => made.agent.close())
  await made.agent.start()
  const web = await made.agent.open(testPlan())
  return { ...made, web }
}

/** The same, with a standby at another node. */
async function withStandby(options: Partial<AgentOptions> = {}) {
  const [first, second] = (await nodes(2)) as [TestServer, TestServer]
  const made = await onlineAt(first, options)
  made.timers.pass(SOON_MS)
  await made.nextEvent('standby')
  second.knows(first)
  return { ...made, first, second, standby: second.standbys[0] ?? assert.fail() }
}

describe('a standby', () => {
  test('is at another node, and is not a session yet', async () => {
    const { agent, first, second, standby } = await withStandby()
    const { clientId, cookie, standbyOf, notAt } = standby.auth
    assert.deepEqual([clientId, cookie.reveal(), notAt], ['', '', 'nd_1'])
    assert.deepEqual([standbyOf?.clientId, standbyOf?.cookie.reveal()], ['ts_1001', 'cookie_1001'])
    assert.deepEqual([first.sessions.length, second.sessions.length], [1, 0])
    await agent.close()
    assert.equal(await standby.closed, undefined)
    await until(() => first.connections + second.connections === 0)
  })

  test('takes over a lost session at once, over the same connection and with the same addresses', async () => {
    const { web, first, second, standby, events, nextEvent } = await withStandby()
    const { url } = web
    const dead = first.latest
    const asked: Begin[] = []
    second.rules.begin = (begin) => {
      asked.push(begin)
      return ''
    }
    await first.close()
    const session = await second.session(1)
    assert.equal(session, standby)
    assert.deepEqual(asked, [{ isMoving: false }])
    assert.equal((await nextEvent('online')).isResumed, true)
    await until(() => session.binds.length === 1)
    assert.deepEqual(
      session.binds.map(({ id, token }) => [id, token.reveal()]),
      [[web.id, `token_of_${web.id}`]],
    )
    assert.equal(dead.binds.length, 1)
    await until(() => web.isOnline)
    assert.equal(web.url, url)
    assert.equal(await readAll(second.visit(web.id)), 'served')
    const offline = events.find(({ type }) => type === 'offline')
    assert.equal(offline?.type === 'offline' && offline.retryMs, 0)
  })

  test('takes over the session when its node asks it to leave, without loss for visitors', async () => {
    const { web, first, second, standby, events, nextEvent } = await withStandby()
    const asked: Begin[] = []
    second.rules.begin = (begin) => {
      asked.push(begin)
      return ''
    }
    first.move(first.latest, [at(second)])
    await nextEvent('moved')
    assert.equal(await second.session(1), standby)
    assert.deepEqual(asked, [{ isMoving: true }])
    assert.equal(await readAll(second.visit(web.id)), 'served')
    assert.equal(await first.latest.closed, undefined)
    assert.ok(!events.some(({ type }) => type === 'offline'))
  })

  test('that has become the session moves like any other', async () => {
    const { web, first, second, nextEvent } = await withStandby()
    await first.close()
    await nextEvent('offline')
    const session = await second.session(1)
    await until(() => web.isOnline)
    second.move(session)
    await nextEvent('moved')
    assert.equal((await second.session(2)).auth.isMoving, true)
    assert.equal(await session.closed, undefined)
  })

  test('is dropped when its own node stops, and another one is found', async () => {
    const [first, second, third] = (await nodes(3)) as [TestServer, TestServer, TestServer]
    const { timers, nextEvent } = await onlineAt(first)
    timers.pass(SOON_MS)
    await nextEvent('standby')
    const [here, there] = second.standbys.length === 1 ? [second, third] : [third, second]
    const [standby = assert.fail()] = here.standbys
    // It is about to stop, and accepts no more.
    here.rules.auth = () => errorText('Stopping.', 'ERR_NGROK_803')
    here.move(standby)
    assert.equal(await standby.closed, undefined)
    timers.pass(SOON_MS)
    await nextEvent('standby')
    assert.equal(there.standbys.length, 1)
    assert.equal(first.sessions.length, 1)
  })

  test('is replaced after it was lost, with growing pauses if it does not last', async () => {
    const { timers, second } = await withStandby()
    const waits: number[] = []
    for (const count of [2, 3, 4]) {
      second.cut()
      const lostAt = timers.now()
      for (let turn = 1; second.standbys.length < count; turn++) {
        if (turn % 100 === 0) timers.pass(100)
        await new Promise((resolve) => setImmediate(resolve))
      }
      waits.push(timers.now() - lostAt)
    }
    const [first = 0, then = 0, last = 0] = waits
    assert.ok(first < then && then < last, `waited ${waits.join(', ')} ms`)
  })

  test('that is refused when it begins is followed by a normal reconnect', async () => {
    const { web, first, second, standby, timers } = await withStandby()
    second.rules.begin = () => errorText('Stopping.', 'ERR_NGROK_803')
    await first.close()
    await standby.closed
    for (; second.sessions.length === 0; timers.pass(100)) await new Promise((resolve) => setTimeout(resolve, 1))
    const session = await second.session(1)
    assert.notEqual(session, standby)
    await until(() => web.isOnline)
  })

  test('that may not begin is followed by a reconnect to the node of the session', async () => {
    const { agent, web, first, second, standby, timers } = await withStandby()
    // Its connection breaks but the node lives: without a database, only this node can resume the session.
    second.rules.begin = () => errorText('Away.', 'ERR_NGROK_802')
    first.cut()
    await standby.closed
    for (; first.sessions.length === 1; timers.pass(100)) await new Promise((resolve) => setTimeout(resolve, 1))
    await until(() => web.isOnline)
    assert.deepEqual([first.latest.auth.clientId, second.sessions.length], ['ts_1001', 0])
    assert.ok(agent.isOnline)
  })

  test('uses the list of nodes from when it begins, not from when it connected', async () => {
    const [first, second, third] = (await nodes(3)) as [TestServer, TestServer, TestServer]
    first.rules.node = { nodeId: 'nd_1', nodeAddresses: [at(second)] }
    second.rules.node = { nodeId: 'nd_2', nodeAddresses: [at(first)] }
    const { nextEvent, timers } = await onlineAt(first)
    timers.pass(SOON_MS)
    await nextEvent('standby')
    // The third has come meanwhile, and the first is gone for good.
    second.knows(first)
    second.rules.node = { nodeId: 'nd_2', nodeAddresses: [at(third)] }
    await first.close()
    await second.session(1)
    await nextEvent('online')
    timers.pass(SOON_MS)
    await nextEvent('standby')
    assert.equal(third.standbys.length, 1)
  })

  test('is not opened if one connection is the limit, nor besides a second session', async () => {
    const pooled = testPlan({ asks: { proto: 'https', opts: {}, isPooled: true } })
    for (const [connections, plan] of [
      [1, testPlan()],
      ['auto', pooled],
    ] as const) {
      const [first, second] = (await nodes(2)) as [TestServer, TestServer]
      const { agent, timers } = testAgent({
        ...{ server: { host: '127.0.0.1', port: first.port }, ca: identity.ca, connections },
      })
      closing.push(() => agent.close())
      await agent.start()
      await agent.open(plan)
      if (plan === pooled) await second.session(1)
      for (let i = 0; i < 10; i++) {
        timers.pass(SOON_MS)
        await first.command(streamTypes.restart)
      }
      assert.equal(second.standbys.length, 0)
      await agent.close()
    }
  })

  test('is given up at a server that does not support it, and the session stays as it was', async () => {
    const [first, second] = (await nodes(2)) as [TestServer, TestServer]
    second.rules.isOlder = true
    const { agent, web, timers } = await onlineAt(first)
    timers.pass(SOON_MS)
    const begun = await second.session(1)
    assert.equal(begun.auth.clientId, '')
    assert.equal(await begun.closed, undefined)
    assert.ok((timers.next ?? 0) > SOON_MS / 2, 'and does not ask again at once')
    assert.ok(agent.isOnline && web.isOnline)
    assert.equal(await readAll(first.visit(web.id)), 'served')
  })
})
