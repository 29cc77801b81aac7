import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { makeIdentity } from '../../../test/support/make-certificate.ts'
import { isId } from '../../lib/ids.ts'
import { Sealer } from '../../lib/secrets/seal.ts'
import type { AuthAnswer } from '../../link/wire/messages/auth.ts'
import {
  ok,
  refusedWith,
  TestAgentListener,
  type TestAgentListenerOptions,
  until,
} from './testing/test-agent-listener.ts'
import { listed } from './testing/test-control.ts'

const identity = await makeIdentity()

async function startAgent(options?: TestAgentListenerOptions) {
  const listener = await new TestAgentListener(identity, options).listen()
  after(() => listener.close())
  return { listener, ...(await listener.online()) }
}

const back = ({ clientId, cookie }: AuthAnswer) => ({ clientId, cookie })

describe('a label tunnel', () => {
  test('is listed with its labels, and groups find it', async () => {
    const { listener, agent, auth } = await startAgent()
    const { registry } = listener.tunnels
    const group = registry.followGroup({ app: 'web' })
    const id = ok(await agent.startLabels({ app: 'web', dc: '1' }, { metadata: 'mine', forwardsProto: 'http2' }))
    assert.ok(isId(id, 'tn_'))
    const [tunnel] = await listed(registry).tunnels({ limit: 10 })
    assert.deepEqual(
      { ...tunnel, startedAt: '', labels: { ...tunnel?.labels } },
      {
        id,
        sessionId: auth.clientId,
        startedAt: '',
        metadata: 'mine',
        region: 'local',
        forwardsTo: 'localhost:80',
        labels: { app: 'web', dc: '1' },
      },
    )
    assert.deepEqual(await listed(registry).endpoints({ limit: 10 }), [])
    assert.deepEqual(group.members, [{ tunnelId: id, httpVersion: 2 }])
    assert.deepEqual(await listed(registry).tunnelsWith({ dc: '1', app: 'web' }), [id])
    assert.deepEqual(await listed(registry).tunnelsWith({ app: 'web', dc: '2' }), [])
    await agent.leave()
    await until(() => group.members.length === 0)
    assert.deepEqual(await listed(registry).tunnelsWith({ app: 'web' }), [])
  })

  test('started later sorts later, whatever its labels', async () => {
    const { listener, agent } = await startAgent()
    const ids: string[] = []
    for (let i = 0; i < 50; i++) ids.push(ok(await agent.startLabels({ n: String(i % 7) })))
    assert.deepEqual([...ids].sort(), ids)
    assert.equal(new Set(ids).size, 50)
    const page = await listed(listener.registry).tunnels({ limit: 100 })
    assert.deepEqual(
      page.map(({ id }) => id),
      ids.toReversed(),
    )
  })

  test('needs an ACL that covers every one of its labels', async () => {
    const { listener, agent } = await startAgent()
    listener.credentials.restrict('bind:app=*')
    ok(await agent.startLabels({ app: 'a' }))
    const refused = await agent.startLabels({ app: 'a', dc: '1' })
    assert.equal(refusedWith(refused), 399)
    assert.match(JSON.stringify(refused), /`dc=1`/)
    listener.credentials.restrict('bind:*.example.com')
    assert.equal(refusedWith(await agent.startLabels({ app: 'a' })), 399)
    listener.credentials.restrict('*')
    ok(await agent.startLabels({ app: 'a', dc: '1' }))
  })

  const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, 'v']))
  const refused: [what: string, labels: Record<string, string>, ngrok: number][] = [
    ['without labels', {}, 394],
    ['with an empty key', { '': 'v' }, 301],
    ['with an empty value', { k: '' }, 301],
    ['with a `=` in a key', { 'a=b': 'v' }, 301],
    ['with a `=` in a value', { k: 'a=b' }, 301],
    ['with a long value', { k: 'ü'.repeat(128) }, 301],
    ['with too many labels', many(65), 301],
  ]
  for (const [what, labels, ngrok] of refused) {
    test(`${what} is refused with ${ngrok}`, async () => {
      const { listener, agent } = await startAgent()
      assert.equal(refusedWith(await agent.startLabels(labels)), ngrok)
      assert.equal(listener.load.tunnels, 0)
    })
  }

  test('may have as many labels as a group', async () => {
    const { agent } = await startAgent()
    ok(await agent.startLabels(many(64)))
  })
})

describe('a session that returns', () => {
  test('gets the same ids for equal labels, one by one, and their start', async () => {
    const clock = { now: 1_000_000_000 }
    const { listener, agent, auth } = await startAgent({ now: () => clock.now })
    const sets = [{ a: '1', b: '2' }, { a: '1' }, { b: '2', a: '1' }]
    for (const labels of sets) ok(await agent.startLabels(labels))
    const before = await listed(listener.registry).tunnels({ limit: 10 })
    await agent.leave()
    await until(() => listener.load.sessions === 0)
    clock.now += 60_000
    const { agent: again } = await listener.online(back(auth))
    const ids = [...sets].reverse().map(async (labels) => ok(await again.startLabels(labels)))
    assert.deepEqual((await Promise.all(ids)).sort(), before.map(({ id }) => id).sort())
    assert.deepEqual(await listed(listener.registry).tunnels({ limit: 10 }), before)
    // A further tunnel with the same labels is new.
    const more = ok(await again.startLabels({ a: '1' }))
    assert.ok(!before.some(({ id }) => id === more))
  })

  test('gets them even while its old connection is still there', async () => {
    const { listener, agent, auth } = await startAgent()
    const id = ok(await agent.startLabels({ a: '1' }))
    const { agent: again } = await listener.online(back(auth))
    assert.equal(ok(await again.startLabels({ a: '1' })), id)
    assert.equal(listener.load.tunnels, 1)
  })

  test('ends the right tunnel by its old id after a restart of the server, and no other one', async () => {
    const seal = new Sealer(randomBytes(32))
    const first = await startAgent({ seal })
    const old = ok(await first.agent.startLabels({ a: '1' }))
    const oldOther = ok(await first.agent.startLabels({ a: '2' }))
    await first.listener.close()
    const { listener, agent } = await (async () => {
      const listener = await new TestAgentListener(identity, { seal }).listen()
      after(() => listener.close())
      return { listener, ...(await listener.online(back(first.auth))) }
    })()
    const other = ok(await agent.startLabels({ a: '2' }))
    const id = ok(await agent.startLabels({ a: '1' }))
    assert.notEqual(id, old)
    const present = async () => (await listed(listener.registry).tunnels({ limit: 10 })).map((each) => each.id)
    await agent.unbind(old)
    assert.deepEqual(await present(), [other])
    // Agents send it three times, which must not end the next tunnel with these labels.
    const next = ok(await agent.startLabels({ a: '1' }))
    await agent.unbind(old)
    await agent.unbind(old)
    await agent.unbind(id)
    assert.deepEqual(await present(), [next, other])
    await agent.unbind(oldOther)
    assert.deepEqual(await present(), [next])
  })
})

test('ending a tunnel three times never ends the next one with its labels', async () => {
  const { listener, agent, auth } = await startAgent()
  for (const session of [agent, undefined]) {
    const it = session ?? (await listener.online(back(auth))).agent
    const id = ok(await it.startLabels({ a: '1' }))
    await it.unbind(id)
    const next = ok(await it.startLabels({ a: '1' }))
    assert.notEqual(next, id)
    await it.unbind(id)
    await it.unbind(id)
    assert.deepEqual(
      (await listed(listener.registry).tunnels({ limit: 10 })).map((each) => each.id),
      [next],
    )
  }
})
