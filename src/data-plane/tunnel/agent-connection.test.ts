import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { makeIdentity } from '../../../test/support/make-certificate.ts'
import { Secret } from '../../lib/secrets/secret.ts'
import type { AuthRequest } from '../../link/wire/messages/auth.ts'
import { streamTypes } from '../../link/wire/stream-types.ts'
import { bindRequest } from './testing/raw-agent.ts'
import {
  ok,
  refusedWith,
  TestAgentListener,
  type TestAgentListenerOptions,
  until,
} from './testing/test-agent-listener.ts'
import { listed } from './testing/test-control.ts'

const identity = await makeIdentity()

async function startTestListener(options?: TestAgentListenerOptions): Promise<TestAgentListener> {
  const listener = await new TestAgentListener(identity, options).listen()
  after(() => listener.close())
  return listener
}

test('an agent with the token of a credential is let in and listed', async () => {
  const listener = await startTestListener()
  const { auth } = await listener.online({ metadata: 'mine', os: 'plan9' })
  assert.match(auth.clientId, /^ts_[0-9A-Za-z]{27}$/)
  assert.equal(auth.sessionId, auth.clientId)
  assert.deepEqual([auth.version, auth.serverVersion, auth.region], ['3', '9.9.9', 'local'])
  const session = await listed(listener.registry).session(auth.clientId)
  assert.match(session?.startedAt ?? '', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
  assert.deepEqual(
    { ...session, startedAt: '' },
    {
      id: auth.clientId,
      agentVersion: '1.2.3',
      credentialId: 'cr_test',
      ip: '127.0.0.1',
      metadata: 'mine',
      os: 'plan9',
      region: 'local',
      startedAt: '',
      transport: 'v2',
    },
  )
  assert.deepEqual(await listed(listener.registry).sessions({ limit: 10 }), [session])
})

test('an agent that supports only the older version is answered in it', async () => {
  const listener = await startTestListener()
  assert.equal((await listener.online({ versions: ['2'] })).auth.version, '2')
})

describe('an agent is refused', () => {
  const cases: Record<string, [change: Partial<AuthRequest>, ngrok: number]> = {
    'without a token': [{ authtoken: new Secret('') }, 105],
    'with what is no token': [{ authtoken: new Secret('badToken') }, 105],
    'with a token that holds a line break': [{ authtoken: new Secret(`${'a'.repeat(40)}\n`) }, 105],
    'with a token without end': [{ authtoken: new Secret('a'.repeat(10_000)) }, 105],
    'with a token that nobody has': [{ authtoken: new Secret('a'.repeat(40)) }, 107],
    'when it speaks no version that we do': [{ versions: ['1', '4'] }, 811],
    'when its metadata is too long': [{ metadata: 'ü'.repeat(2049) }, 100],
  }
  for (const [name, [change, ngrok]] of Object.entries(cases)) {
    test(`${name}, with number ${ngrok}, and logged once without its token`, async () => {
      const listener = await startTestListener({ limits: { refusalMs: 1 } })
      const agent = listener.agent()
      assert.equal(refusedWith(await agent.authenticate(change)), ngrok)
      // The server does not wait for the agent to leave.
      await agent.closed
      await until(() => listener.load.unproven === 0)
      assert.equal(listener.load.sessions, 0)
      assert.equal(listener.logLines('agent connection refused').length, 1)
      const token = change.authtoken?.reveal()
      if (token) assert.ok(!JSON.stringify(listener.logged).includes(token))
    })
  }

  test('when its message is malformed', async () => {
    const listener = await startTestListener()
    for (const message of [{ Version: 3 }, { Extra: [] }, { Version: ['3'], Extra: { HeartbeatInterval: -1 } }]) {
      const { Error: text } = await listener.agent().call(streamTypes.auth, message)
      assert.match(String(text), /\n\nERR_NGROK_109\n$/)
    }
  })

  test('for now when the store is down, which does not count as its failure', async () => {
    const listener = await startTestListener({ limits: { failuresPerMinute: 1 } })
    listener.credentials.isAway = true
    assert.equal(refusedWith(await listener.agent().authenticate()), 802)
    listener.credentials.isAway = false
    await listener.online()
  })

  test('when it authenticates a second time, and keeps its session', async () => {
    const listener = await startTestListener()
    const { agent, auth } = await listener.online()
    assert.equal(refusedWith(await agent.authenticate()), 109)
    ok(await agent.bind())
    assert.deepEqual(
      (await listed(listener.registry).sessions({ limit: 10 })).map(({ id }) => id),
      [auth.clientId],
    )
  })
})

test('before it has authenticated an agent may ask for the region, and for nothing else', async () => {
  const listener = await startTestListener()
  const agent = listener.agent()
  assert.deepEqual(await agent.call(streamTypes.serverInfo, {}), { Region: 'local' })
  for (const type of [
    streamTypes.bind,
    streamTypes.unbind,
    streamTypes.startTunnelWithLabel,
    streamTypes.patchTunnel,
  ]) {
    const { Error: text } = await agent.call(type, { Proto: bindRequest.proto, Labels: { a: 'b' } })
    assert.match(String(text), /Authenticate first/)
  }
  assert.deepEqual(listener.registry.counts, { sessions: 0, tunnels: 0, endpoints: 0 })
  ok(await agent.authenticate())
  assert.deepEqual(await agent.call(streamTypes.serverInfo, {}), { Region: 'local' })
})

test('an unknown call is answered', async () => {
  const listener = await startTestListener()
  const { agent } = await listener.online()
  const { Error: text } = await agent.call(streamTypes.stopTunnel, {})
  assert.match(String(text), /type 9.*\n\nERR_NGROK_800\n$/s)
})

test('deleting a credential while its agent is let in ends the session', async () => {
  const listener = await startTestListener()
  const agent = listener.agent()
  // It exists when the token is looked up, and is gone when it is checked again.
  listener.credentials.current = async () => undefined
  await agent.authenticate()
  await agent.closed
  assert.equal(listener.load.sessions, 0)
})

test('a connection that is lost while its token is looked up leaves nothing behind', async () => {
  const listener = await startTestListener()
  const { promise, resolve } = Promise.withResolvers<void>()
  const { credentials } = listener
  const find = credentials.find.bind(credentials)
  credentials.find = async (token) => {
    await promise
    return await find(token)
  }
  const agent = listener.agent()
  const answer = agent.authenticate()
  await until(() => listener.load.unproven === 1)
  await agent.leave()
  await assert.rejects(answer)
  await until(() => listener.load.unproven === 0)
  resolve()
  await promise
  assert.equal(listener.load.sessions, 0)
})
