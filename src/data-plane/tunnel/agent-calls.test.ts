import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { makeIdentity } from '../../../test/support/make-certificate.ts'
import { call } from '../../link/wire/agent-rpc.ts'
import { streamTypes, typeHead } from '../../link/wire/stream-types.ts'
import { MESSAGE_BYTES } from '../../link/wire/wire-bounds.ts'
import { WireError } from '../../link/wire/wire-error.ts'
import { ok, TestAgentListener, type TestAgentListenerOptions, until } from './testing/test-agent-listener.ts'
import { listed } from './testing/test-control.ts'

const identity = await makeIdentity()

async function startAgent(options?: TestAgentListenerOptions) {
  const listener = await new TestAgentListener(identity, options).listen()
  after(() => listener.close())
  return { listener, ...(await listener.online()) }
}

test('unbinding frees the name, and may be repeated', async () => {
  const { listener, agent } = await startAgent()
  const bound = ok(await agent.bind())
  for (let i = 0; i < 3; i++) {
    assert.deepEqual(await agent.unbind(bound.id), { Error: '', Extra: null })
    assert.deepEqual(listener.endpoints.addresses, [])
  }
  assert.deepEqual(await agent.unbind('never-there'), { Error: '', Extra: null })
  assert.deepEqual(await agent.unbind(''), { Error: '', Extra: null })
  assert.deepEqual(listener.registry.counts, { sessions: 1, tunnels: 0, endpoints: 0 })
})

test('an address whose bind was not answered is freed', async () => {
  const { listener, agent } = await startAgent()
  const { promise, resolve } = Promise.withResolvers<void>()
  listener.endpoints.gate = promise
  const message = JSON.stringify({ Proto: 'https', Opts: { Domain: 'app.example.com' } })
  const stream = agent.mux.open(Buffer.concat([typeHead(streamTypes.bind), Buffer.from(message)]))
  if (stream instanceof WireError) assert.fail(stream)
  await until(() => listener.endpoints.asked === 1)
  stream.reset()
  // Its answer shows that the reset has arrived too.
  assert.deepEqual(await agent.unbind('x'), { Error: '', Extra: null })
  resolve()
  ok(await agent.startLabels({ a: 'b' }))
  await until(() => listener.endpoints.addresses.length === 0)
  ok(await agent.bind({ opts: { Domain: 'app.example.com' } }))
})

test('a bind that asks for an IP policy is not served without one', async () => {
  const { listener, agent } = await startAgent()
  const { Error: text } = await agent.call(streamTypes.bind, { Proto: 'https', Extra: { IPPolicyRef: 'ipp_1' } })
  assert.match(String(text), /ERR_NGROK_341/)
  assert.equal(listener.endpoints.asked, 0)
})

test('a session cannot end the tunnel of another session', async () => {
  const { listener, agent } = await startAgent()
  const bound = ok(await agent.bind())
  const { agent: other } = await listener.online()
  await other.unbind(bound.id)
  await other.unbind(bound.tunnelId)
  assert.equal(listener.endpoints.addresses.length, 1)
  const { Error: text } = await other.call(streamTypes.patchTunnel, { TunnelId: bound.tunnelId, Metadata: 'x' })
  assert.match(String(text), /ERR_NGROK_333/)
})

describe('a tunnel that is online', () => {
  test('changes its name, description and metadata when its agent asks', async () => {
    const clock = { now: 1_000_000_000 }
    const { listener, agent } = await startAgent({ now: () => clock.now })
    const bound = ok(await agent.bind({ metadata: 'before' }))
    clock.now += 5000
    const change = { TunnelId: bound.tunnelId, Metadata: 'after', Name: 'n', Description: 'd' }
    assert.deepEqual(await agent.call(streamTypes.patchTunnel, change), { Error: '' })
    const [tunnel] = await listed(listener.registry).tunnels({ limit: 1 })
    const [endpoint] = await listed(listener.registry).endpoints({ limit: 1 })
    assert.equal(tunnel?.metadata, 'after')
    assert.equal(endpoint?.metadata, 'after')
    assert.deepEqual([endpoint?.createdAt, endpoint?.updatedAt], ['1970-01-12T13:46:40Z', '1970-01-12T13:46:45Z'])
    // Absent and null fields stay as they are.
    assert.deepEqual(await agent.call(streamTypes.patchTunnel, { TunnelId: bound.tunnelId, Name: null }), { Error: '' })
    assert.equal((await listed(listener.registry).tunnels({ limit: 1 }))[0]?.metadata, 'after')
  })

  const refused: [what: string, change: Record<string, unknown>, ngrok: number][] = [
    ['a traffic policy', { TrafficPolicy: '{}' }, 301],
    ['pooling', { PoolingEnabled: true }, 301],
    ['long metadata', { Metadata: 'x'.repeat(4097) }, 301],
    ['a message that cannot be read', { Metadata: 5 }, 801],
    ['an unknown tunnel', { TunnelId: 'tn_x' }, 333],
  ]
  for (const [what, change, ngrok] of refused) {
    test(`is not changed by ${what}`, async () => {
      const { listener, agent } = await startAgent()
      const bound = ok(await agent.bind({ metadata: 'before' }))
      const { Error: text } = await agent.call(streamTypes.patchTunnel, { TunnelId: bound.tunnelId, ...change })
      assert.match(String(text), new RegExp(`\\n\\nERR_NGROK_${ngrok}\\n$`))
      assert.equal((await listed(listener.registry).tunnels({ limit: 1 }))[0]?.metadata, 'before')
    })
  }
})

describe('a message', () => {
  test('that is too long is refused, and the session goes on', async () => {
    const { agent } = await startAgent()
    const { Error: text } = await agent.call(streamTypes.bind, {
      Proto: 'https',
      Opts: { x: 'x'.repeat(MESSAGE_BYTES) },
    })
    assert.match(String(text), /ERR_NGROK_812/)
    ok(await agent.bind())
  })

  test('of nearly a mebibyte is accepted', async () => {
    const { listener, agent } = await startAgent()
    ok(await agent.bind({ opts: { TrafficPolicy: 'x'.repeat(MESSAGE_BYTES - 10_000) } }))
    assert.equal(listener.load.tunnels, 1)
  })

  test('that never ends does not hold up others, and further ones must be short', async () => {
    const { agent } = await startAgent()
    for (let i = 0; i < 8; i++) {
      agent.mux.open(Buffer.concat([typeHead(streamTypes.bind), Buffer.from('{"Proto":"https","Opts":{"x":"')]))
    }
    ok(await agent.bind())
    const { Error: text } = await agent.call(streamTypes.bind, { Proto: 'https', Opts: { x: 'x'.repeat(100_000) } })
    assert.match(String(text), /longer than 65536 bytes.*ERR_NGROK_812/s)
  })

  test('that is not JSON is refused, and the session goes on', async () => {
    const { agent } = await startAgent()
    const result = await call(agent.mux, streamTypes.unbind, { Id: '\0' })
    assert.ok(!(result instanceof Error))
    assert.match(String(result.Error), /ERR_NGROK_801/)
    ok(await agent.bind())
  })
})
