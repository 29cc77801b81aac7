import assert from 'node:assert/strict'
import { getActiveResourcesInfo } from 'node:process'
import { after, describe, test } from 'node:test'
import { makeIdentity } from '../../../test/support/make-certificate.ts'
import { Secret } from '../../lib/secrets/secret.ts'
import { DialFault } from '../../model/dial.ts'
import {
  ok,
  refusedWith,
  TestAgentListener,
  type TestAgentListenerOptions,
  until,
} from './testing/test-agent-listener.ts'

const identity = await makeIdentity()

async function startTestListener(options?: TestAgentListenerOptions): Promise<TestAgentListener> {
  const listener = await new TestAgentListener(identity, options).listen()
  after(() => listener.close())
  return listener
}

const visit = { ip: '192.0.2.1', port: 1, proto: 'https', edge: 'none', passthroughTls: false } as const

describe('deleting a credential', () => {
  test('ends its sessions with all their tunnels, and no others', async () => {
    const listener = await startTestListener()
    listener.credentials.all.set('b'.repeat(40), { id: 'cr_other', acl: [] })
    const { agent: other } = await listener.online({ authtoken: new Secret('b'.repeat(40)) })
    const [{ agent: one }, { agent: two, auth }] = [await listener.online(), await listener.online()]
    for (const agent of [one, two, other]) ok(await agent.bind())
    for (const [token, { id }] of listener.credentials.all) if (id === 'cr_test') listener.credentials.all.delete(token)
    for (const session of listener.registry.liveSessions()) {
      if (session.credentialId === 'cr_test') session.end('its credential was deleted')
    }
    assert.deepEqual(listener.registry.counts, { sessions: 1, tunnels: 1, endpoints: 1 })
    await Promise.all([one.closed, two.closed])
    assert.equal(other.mux.isClosed, false)
    // Neither its token nor its cookie is accepted again.
    assert.equal(
      refusedWith(await listener.agent().authenticate({ clientId: auth.clientId, cookie: auth.cookie })),
      107,
    )
  })
})

describe('stopping a tunnel from the server', () => {
  const why = { message: 'its domain was taken away', ngrok: 333 }

  test('tells its agent, sends no more visitors there, and refuses the tunnel when it comes back', async () => {
    const listener = await startTestListener()
    const { agent, auth } = await listener.online()
    const bound = ok(await agent.bind())
    assert.equal(listener.tunnels.stopTunnel(bound.tunnelId, why), true)
    assert.deepEqual(listener.endpoints.addresses, [])
    const fault = await listener.registry.dial({ tunnelId: bound.tunnelId, ...visit })
    assert.ok(fault instanceof DialFault)
    await until(() => agent.received.length === 1)
    assert.deepEqual(agent.received, [{ Id: bound.id, Message: why.message, ErrorCode: 'ERR_NGROK_333' }])
    assert.equal(listener.tunnels.stopTunnel(bound.tunnelId, why), false)
    const again = { id: bound.id, opts: bound.opts, token: bound.token }
    assert.equal(refusedWith(await agent.bind(again)), 333)
    const { agent: back } = await listener.online({ clientId: auth.clientId, cookie: auth.cookie })
    assert.equal(refusedWith(await back.bind(again)), 333)
    ok(await back.bind())
  })

  test('tells nothing to an agent that would not understand it', async () => {
    const listener = await startTestListener()
    const { agent } = await listener.online({ versions: ['2'] })
    const bound = ok(await agent.bind())
    assert.equal(listener.tunnels.stopTunnel(bound.tunnelId, why), true)
    ok(await agent.bind())
    assert.deepEqual(agent.received, [])
    assert.equal(listener.load.tunnels, 1)
  })
})

describe('closing the door', () => {
  test('drops unauthenticated connections, ends every session in order, and frees the port', async () => {
    const listener = await startTestListener()
    const { agent } = await listener.online()
    ok(await agent.bind())
    const nobody = listener.agent()
    await until(() => listener.load.unproven === 1)
    await listener.close()
    assert.equal(await agent.closed, undefined)
    await nobody.closed
    assert.deepEqual(listener.registry.counts, { sessions: 0, tunnels: 0, endpoints: 0 })
    assert.deepEqual(listener.endpoints.addresses, [])
    await (await new TestAgentListener(identity).listen(listener.port)).close()
  })

  test('lets nobody in once it is stopped, and online agents stay until they are told to go', async () => {
    const listener = await startTestListener()
    const { agent } = await listener.online()
    const { tunnelId } = ok(await agent.bind())
    listener.listener.stop()
    await assert.rejects(listener.agent().authenticate())
    const stream = await listener.registry.dial({ tunnelId, ...visit })
    if (stream instanceof DialFault) assert.fail(stream)
    await until(() => agent.visitors.length === 1)
    assert.equal(agent.mux.isClosed, false)
    await listener.close()
    await agent.closed
  })
})

test('a thousand reconnects leave no session, name, socket or timer behind', { timeout: 120_000 }, async () => {
  const listener = await startTestListener()
  const used = () => getActiveResourcesInfo().length
  let { agent, auth } = await listener.online()
  const { clientId } = auth
  const bound = ok(await agent.bind())
  const labelled = ok(await agent.startLabels({ a: 'b' }))
  const before = used()
  for (let i = 0; i < 1000; i++) {
    // Half of them close in order; the others are replaced while the server still takes them for online.
    if (i % 2 === 0) await agent.leave()
    const next = await listener.online({ clientId: auth.clientId, cookie: auth.cookie })
    await agent.closed
    agent = next.agent
    auth = next.auth
    assert.equal(auth.clientId, clientId)
    const again = await agent.bind({ id: bound.id, opts: bound.opts, token: bound.token })
    assert.equal(ok(again).url, bound.url)
    assert.equal(ok(await agent.startLabels({ a: 'b' })), labelled)
  }
  assert.deepEqual(listener.registry.counts, { sessions: 1, tunnels: 2, endpoints: 1 })
  assert.deepEqual(listener.endpoints.addresses, [bound.url])
  assert.equal(listener.load.unproven, 0)
  await until(() => used() <= before + 5)
  await agent.leave()
  await until(() => listener.load.sessions === 0)
  assert.deepEqual(listener.endpoints.addresses, [])
})
