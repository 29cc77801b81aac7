import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type TlsIdentity, tlsIdentity } from '../../test/support/tls-identity.ts'
import { streamTypes } from '../link/wire/stream-types.ts'
import type { AgentOptions } from './agent.ts'
import { testAgent, testPlan, until } from './testing/test-agent.ts'
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

describe('tunnels', () => {
  test('a tunnel that the server refuses is not opened, and the reason is reported', async () => {
    const testServer = await openServer({ bind: () => 'The name `x` is taken.\n\nERR_NGROK_334\n' })
    const { agent } = agentOf(testServer)
    await agent.start()
    await assert.rejects(agent.open(testPlan()), { code: 'refused', message: 'The name `x` is taken.' })
    assert.equal(agent.tunnels.size, 0)
  })

  test('a bind without an answer is repeated on the same session', async (t) => {
    const testServer = await openServer({ isSlow: true })
    const { agent, timers, nextEvent } = agentOf(testServer)
    await agent.start()
    await nextEvent('online')
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const opened = agent.open(testPlan())
    await until(() => testServer.latest.binds.length === 1)
    delete testServer.rules.isSlow
    t.mock.timers.tick(20_000)
    await until(() => timers.waiting === 2)
    timers.pass(15_000)
    assert.ok((await opened).isOnline)
    assert.equal(testServer.sessions.length, 1)
  })

  test('a twin asks for the name of the first tunnel', async () => {
    const testServer = await openServer()
    const { agent } = agentOf(testServer)
    await agent.start()
    const first = await agent.open(testPlan())
    const second = await agent.open(testPlan({ asks: { proto: 'http', opts: {} } }), { twin: first })
    assert.equal(second.url, first.url.replace('https:', 'http:'))
  })

  test('a tunnel opened while the server is down comes online when it is back', async () => {
    const testServer = await openServer()
    const { agent, timers, nextEvent } = agentOf(testServer)
    await agent.start()
    await nextEvent('online')
    testServer.cut()
    const { retryMs } = await nextEvent('offline')
    const opened = agent.open(testPlan())
    timers.pass(retryMs)
    assert.ok((await opened).isOnline)
  })

  test('a closed tunnel is released and not requested again', async () => {
    const testServer = await openServer()
    const { agent, timers, nextEvent } = agentOf(testServer)
    await agent.start()
    const web = await agent.open(testPlan())
    await nextEvent('online')
    await agent.closeTunnel(web)
    assert.deepEqual(testServer.latest.unbound, [web.id])
    testServer.cut()
    timers.pass((await nextEvent('offline')).retryMs)
    await nextEvent('online')
    assert.deepEqual(testServer.latest.binds, [])
  })

  test('a tunnel that the server stops is reported and not requested again', async () => {
    const testServer = await openServer()
    const { agent, timers, nextEvent } = agentOf(testServer)
    await agent.start()
    const web = await agent.open(testPlan())
    await nextEvent('online')
    testServer.stopTunnel(web.id, 'Over quota.')
    const { tunnel, message } = await nextEvent('tunnel-stopped')
    assert.deepEqual([tunnel, message], [web, 'Over quota.'])
    testServer.cut()
    timers.pass((await nextEvent('offline')).retryMs)
    await nextEvent('online')
    assert.deepEqual(testServer.latest.binds, [])
  })
})

describe('closing', () => {
  test('releases every tunnel and ends the session with a GOAWAY', async () => {
    const testServer = await openServer()
    const { agent } = agentOf(testServer)
    await agent.start()
    const tunnels = [await agent.open(testPlan()), await agent.open(testPlan({ name: 'two' }))]
    await agent.close()
    assert.deepEqual(
      testServer.latest.unbound,
      tunnels.map(({ id }) => id),
    )
    // No error: it was a GOAWAY, not a broken connection.
    assert.equal(await testServer.latest.closed, undefined)
    await assert.rejects(agent.open(testPlan()), { code: 'closed' })
  })

  test('does not wait for the next attempt', async () => {
    const testServer = await openServer()
    const { agent, nextEvent, timers } = agentOf(testServer)
    await agent.start()
    await nextEvent('online')
    testServer.cut()
    await nextEvent('offline')
    await agent.close()
    assert.equal(timers.waiting, 0)
  })
})

describe('commands', () => {
  const types = { restart: streamTypes.restart, stop: streamTypes.stop, update: streamTypes.update } as const

  test('are announced, answered, and carried out after the answer', async () => {
    const testServer = await openServer()
    const done: string[] = []
    const handler = (name: string) => ({
      unsupported: '',
      run: () => ({ afterwards: () => done.push(name) }),
    })
    const commands = {
      restart: { unsupported: 'not on this system', run: () => assert.fail('unsupported') },
      stop: handler('stop'),
      update: { unsupported: '', run: () => ({ error: 'no update is available' }) },
    }
    const { agent, nextEvent } = agentOf(testServer, { commands })
    await agent.start()
    const { auth } = testServer.latest
    assert.deepEqual(
      [auth.restartUnsupported, auth.stopUnsupported, auth.updateUnsupported],
      ['not on this system', '', ''],
    )
    assert.equal(await testServer.command(types.restart), 'not on this system')
    assert.equal(
      await testServer.command(types.update, { Version: '', PermitMajorVersion: false }),
      'no update is available',
    )
    assert.deepEqual(done, [])
    assert.equal(await testServer.command(types.stop), '')
    await until(() => done.length > 0)
    assert.deepEqual(done, ['stop'])
    assert.equal((await nextEvent('command')).name, 'update')
    assert.equal((await nextEvent('command')).name, 'stop')
  })

  test('that throw are answered with the error', async () => {
    const testServer = await openServer()
    const broken = {
      unsupported: '',
      run: () => {
        throw new Error('disk full')
      },
    }
    const { agent } = agentOf(testServer, { commands: { restart: broken, stop: broken, update: broken } })
    await agent.start()
    assert.equal(await testServer.command(types.stop), 'disk full')
  })

  test('are refused by an agent inside another program', async () => {
    const testServer = await openServer()
    const { agent } = agentOf(testServer)
    await agent.start()
    assert.match(testServer.latest.auth.stopUnsupported ?? '', /takes no commands/)
    assert.match(String(await testServer.command(types.stop)), /takes no commands/)
  })

  test('of an unknown kind are refused', async () => {
    const testServer = await openServer()
    const { agent } = agentOf(testServer)
    await agent.start()
    assert.equal(await testServer.command(streamTypes.serverInfo), 'stream_refused')
  })
})
