/** Binds of an address that is taken: a holder that has vanished loses it to its successor, and one that is alive keeps it. */
import assert from 'node:assert/strict'
import { after, describe, type TestContext, test } from 'node:test'
import { makeIdentity } from '../../../test/support/make-certificate.ts'
import { Secret } from '../../lib/secrets/secret.ts'
import { call } from '../../link/wire/agent-rpc.ts'
import { type BindMessage, buildBind } from '../../link/wire/messages/bind.ts'
import { streamTypes } from '../../link/wire/stream-types.ts'
import { bindRequest } from './testing/raw-agent.ts'
import { ok, refusedWith, TestAgentListener, until } from './testing/test-agent-listener.ts'
import { listed } from './testing/test-control.ts'

const identity = await makeIdentity()

/** Longer than a test waits for an answer: a refusal in time is due to a sign of life. */
const NEVER_MS = 10_000

const name: Partial<BindMessage> = { opts: { Domain: 'app.example.com' } }

/** A door, and an agent that serves `address`; a frozen one keeps its connection, and sends and answers nothing. */
async function start({ signOfLifeMs = 200, isAlive = false, address = name } = {}) {
  const listener = await new TestAgentListener(identity, { limits: { signOfLifeMs } }).listen()
  after(() => listener.close())
  const { agent: holder, auth } = await listener.online({}, { isAlive })
  const bound = ok(await holder.bind(address))
  return { listener, holder, auth, bound }
}

/** Counts the requests to the only session for a sign of life. */
function watchQuestions(t: TestContext, { registry }: TestAgentListener): () => number {
  const [session = assert.fail('nobody is online')] = registry.liveSessions()
  const { mock } = t.mock.method(session, 'proveAlive')
  return () => mock.callCount()
}

describe('an agent that is frozen', () => {
  const addresses: Record<string, Partial<BindMessage>> = {
    'name of https': name,
    'name of http': { proto: 'http', ...name },
    'name of tls': { proto: 'tls', ...name },
    wildcard: { opts: { Domain: '*.example.com' } },
    'TCP port': { proto: 'tcp', opts: { Addr: ':20003' } },
  }
  for (const [what, address] of Object.entries(addresses)) {
    test(`loses its ${what} to the agent that asks for it, and is offline`, async () => {
      const { listener, holder, auth, bound } = await start({ address })
      ok(await holder.startLabels({ a: 'b' }))
      const { agent } = await listener.online()
      assert.equal(ok(await agent.bind(address)).url, bound.url)
      await holder.closed
      const [offline, ...more] = listener.logLines('agent offline')
      assert.equal(offline?.session, auth.clientId)
      assert.match(String(offline?.reason), /no sign of life when another agent asked/)
      assert.deepEqual(more, [])
      assert.deepEqual(listener.registry.counts, { sessions: 1, tunnels: 1, endpoints: 1 })
      assert.deepEqual(listener.endpoints.addresses, [bound.url])
      // The address is fully the successor's.
      await agent.unbind(ok(await agent.bind({ id: 'other' })).id)
      await agent.leave()
      await until(() => listener.endpoints.addresses.length === 0)
    })
  }

  test('leaves the id of its tunnel to the agent that has its token', async () => {
    const { listener, bound } = await start()
    const { agent } = await listener.online()
    const { opts, token } = bound
    assert.equal(ok(await agent.bind({ opts, token })).tunnelId, bound.tunnelId)
  })

  test('loses its name to one of several agents that ask at the same time, and the others are refused', async () => {
    const { listener, bound } = await start()
    const others = await Promise.all(Array.from({ length: 5 }, () => listener.online()))
    const outcomes = await Promise.all(others.flatMap(({ agent }) => [agent.bind(name), agent.bind(name)]))
    const refused = outcomes.filter((outcome) => 'ngrok' in outcome)
    assert.equal(refused.length, outcomes.length - 1)
    for (const outcome of refused) assert.equal(refusedWith(outcome), 334)
    assert.deepEqual(listener.endpoints.addresses, [bound.url])
    assert.deepEqual(listener.registry.counts, { sessions: 5, tunnels: 1, endpoints: 1 })
  })

  test('keeps nothing open for an agent that left while it waited', async () => {
    const { listener } = await start({ signOfLifeMs: 500 })
    const { agent } = await listener.online()
    const binding = agent.bind(name)
    await until(() => listener.endpoints.asked === 2)
    await agent.leave()
    await assert.rejects(binding)
    await until(() => listener.load.sessions === 0)
    await new Promise(setImmediate)
    assert.deepEqual(listener.endpoints.addresses, [])
    assert.equal(listener.endpoints.asked, 2)
    assert.deepEqual(listener.registry.counts, { sessions: 0, tunnels: 0, endpoints: 0 })
  })

  test('keeps nothing open for an agent that no longer waits for its bind', async () => {
    const { listener } = await start()
    const { agent } = await listener.online()
    await call(agent.mux, streamTypes.bind, buildBind({ ...bindRequest, ...name }), { timeoutMs: 50 })
    await until(() => listener.logLines('tunnel stopped').length === 1)
    assert.deepEqual(listener.endpoints.addresses, [])
    ok(await agent.bind(name))
  })

  test('makes way at once when it is cut off while it is asked', async () => {
    const { listener, holder } = await start({ signOfLifeMs: NEVER_MS })
    const { agent } = await listener.online()
    const binding = agent.bind(name)
    await until(() => listener.endpoints.asked === 2)
    await holder.leave()
    ok(await binding)
  })

  test('does not make way for an agent whose ACL was revoked meanwhile', async () => {
    const { listener } = await start()
    const { agent } = await listener.online()
    const binding = agent.bind(name)
    await until(() => listener.endpoints.asked === 2)
    listener.credentials.restrict('bind:elsewhere.com')
    assert.equal(refusedWith(await binding), 316)
    assert.deepEqual(listener.endpoints.addresses, [])
  })
})

describe('an agent that is alive', () => {
  test('keeps its name, and the other agent is refused a round trip later', async () => {
    const { listener, holder, bound } = await start({ isAlive: true, signOfLifeMs: NEVER_MS })
    const { agent } = await listener.online()
    const all = await Promise.all(Array.from({ length: 50 }, () => agent.bind(name)))
    for (const outcome of all) assert.equal(refusedWith(outcome), 334)
    assert.equal(holder.mux.isClosed, false)
    assert.equal((await listed(listener.registry).tunnel(bound.tunnelId))?.id, bound.tunnelId)
  })

  test('keeps its name when it answers no pings but sends anything at all', async () => {
    const { listener, holder } = await start({ signOfLifeMs: 1000 })
    const { agent } = await listener.online()
    const binding = agent.bind(name)
    await until(() => listener.endpoints.asked === 2)
    ok(await holder.startLabels({ a: 'b' }))
    assert.equal(refusedWith(await binding), 334)
    assert.equal(holder.mux.isClosed, false)
  })

  test('makes way when it gives up its name while it is asked', async () => {
    const { listener, holder, bound } = await start({ signOfLifeMs: 1000 })
    const { agent } = await listener.online()
    const binding = agent.bind(name)
    await until(() => listener.endpoints.asked === 2)
    await holder.unbind(bound.id)
    assert.equal(ok(await binding).url, bound.url)
    assert.equal(holder.mux.isClosed, false)
  })
})

describe('no sign of life is asked for', () => {
  test('for an agent whose ACL does not cover the name', async (t) => {
    const { listener } = await start()
    const questions = watchQuestions(t, listener)
    const authtoken = new Secret('b'.repeat(40))
    listener.credentials.all.set(authtoken.reveal(), { id: 'cr_other', acl: ['bind:elsewhere.com'] })
    const { agent } = await listener.online({ authtoken })
    assert.equal(refusedWith(await agent.bind(name)), 316)
    assert.equal(questions(), 0)
  })

  test('for a second tunnel of the same session', async (t) => {
    const { listener, holder } = await start()
    const questions = watchQuestions(t, listener)
    assert.equal(refusedWith(await holder.bind(name)), 334)
    assert.equal(questions(), 0)
  })

  test('for a random port', async (t) => {
    const { listener, holder } = await start({ address: { proto: 'tcp' } })
    for (let i = 0; i < 9; i++) ok(await holder.bind({ proto: 'tcp' }))
    const questions = watchQuestions(t, listener)
    const { agent } = await listener.online()
    assert.equal(refusedWith(await agent.bind({ proto: 'tcp' })), 334)
    assert.equal(questions(), 0)
  })

  test('for a name on the other listener', async (t) => {
    const { listener } = await start()
    const questions = watchQuestions(t, listener)
    const { agent } = await listener.online()
    ok(await agent.bind({ proto: 'http', ...name }))
    assert.equal(questions(), 0)
  })
})
