/** Standbys: connections of agents whose sessions are at other nodes. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { makeIdentity } from '../../../test/support/make-certificate.ts'
import { Sealer } from '../../lib/secrets/seal.ts'
import { Secret } from '../../lib/secrets/secret.ts'
import type { AuthAnswer, AuthRequest } from '../../link/wire/messages/auth.ts'
import { streamTypes } from '../../link/wire/stream-types.ts'
import { TOKEN } from './testing/raw-agent.ts'
import {
  ok,
  refusedWith,
  TestAgentListener,
  type TestAgentListenerOptions,
  until,
} from './testing/test-agent-listener.ts'

const identity = await makeIdentity()

/** What our agents send for a standby. */
const asStandby = ({ clientId, cookie }: AuthAnswer, more: Partial<AuthRequest> = {}): Partial<AuthRequest> => ({
  standbyOf: { clientId, cookie },
  canMove: true,
  knowsNodes: true,
  ...more,
})

/** Two nodes of one server: `first` has a session, and `second` none. */
async function twoNodes(options: TestAgentListenerOptions = {}) {
  const seal = new Sealer(randomBytes(32))
  const open = async (id: string) => {
    const given = { seal, nodes: { id, addresses: () => [] }, limits: { refusalMs: 10, leastHeartbeatMs: 10 } }
    const listener = await new TestAgentListener(identity, { ...given, ...options }).listen()
    after(() => listener.close())
    return listener
  }
  const [first, second] = [await open('nd_1'), await open('nd_2')]
  const { agent: own, auth: session } = await first.online({ canMove: true, knowsNodes: true })
  return { first, second, own, session }
}

/** The same nodes, with a standby at `second`. */
async function withStandby(options: TestAgentListenerOptions = {}) {
  const made = await twoNodes(options)
  const { agent, auth } = await made.second.online(asStandby(made.session))
  return { ...made, agent, auth }
}

const isEmpty = (listener: TestAgentListener) =>
  assert.deepEqual(listener.registry.counts, { sessions: 0, tunnels: 0, endpoints: 0 })

describe('a standby', () => {
  test('is let in for a session, is no session, and may make no calls', async () => {
    const { second, agent, auth, session } = await withStandby()
    assert.deepEqual([auth.isStandby, auth.clientId], [true, session.clientId])
    assert.equal(refusedWith(await agent.bind()), 801)
    assert.equal(refusedWith(await agent.startLabels({ a: 'b' })), 801)
    assert.equal(refusedWith(await agent.authenticate()), 109)
    isEmpty(second)
    assert.deepEqual([second.load.unproven, second.tunnels.standbys.size], [0, 1])
    await agent.leave()
    await until(() => second.tunnels.standbys.size === 0)
  })

  test('is refused without proof that the session is its own', async () => {
    const { first, second, session } = await twoNodes()
    const other = 'b'.repeat(40)
    for (const listener of [first, second]) listener.credentials.all.set(other, { id: 'cr_other', acl: [] })
    const stranger = await first.online({ authtoken: new Secret(other) })
    const hostile: [name: string, request: Partial<AuthRequest>, number: number][] = [
      ["another's session with its own cookie", asStandby({ ...session, cookie: stranger.auth.cookie }), 109],
      ["another's with its own authtoken", asStandby(session, { authtoken: new Secret(other) }), 109],
      ['no cookie', asStandby({ ...session, cookie: new Secret('') }), 109],
      ['no session', asStandby({ ...session, clientId: '' }), 109],
      ['an authtoken that nobody has', asStandby(session, { authtoken: new Secret('c'.repeat(40)) }), 107],
      ['the node that has the session', asStandby(session, { notAt: 'nd_2' }), 108],
    ]
    for (const [name, request, number] of hostile) {
      assert.equal(refusedWith(await second.agent().authenticate(request)), number, name)
    }
    assert.equal(refusedWith(await second.agent().begin()), 801, 'only a standby can begin')
    assert.equal(second.tunnels.standbys.size, 0)
    isEmpty(second)
  })

  test('becomes the session when that is lost, and keeps its address', async () => {
    const { first, second, own, agent, session } = await withStandby()
    const had = ok(await own.bind())
    await first.close()
    ok(await agent.begin())
    const got = ok(await agent.bind({ id: had.id, token: had.token }))
    assert.equal(got.url, had.url)
    const { sessions, tunnels, connections } = second.load
    assert.deepEqual([sessions, tunnels, connections, second.tunnels.standbys.size], [1, 1, 0, 0])
    assert.ok(second.registry.liveSession(session.clientId))
    assert.equal(refusedWith(await agent.begin()), 800, 'it begins only once')
    assert.equal(second.load.sessions, 1)
  })

  test('begins when its former tunnels are known, and keeps requests waiting until then', async () => {
    const had = { id: 'tn_had', startedAt: 1, labels: { app: 'web' } }
    for (const isMoving of [false, true]) {
      const known = Promise.withResolvers<readonly (typeof had)[]>()
      const { second, agent } = await withStandby({ answers: { returning: () => known.promise } })
      const begun = agent.begin({ isMoving })
      const [bound, labelled, again] = [agent.bind(), agent.startLabels({ app: 'web' }), agent.begin({ isMoving })]
      await agent.pinged()
      isEmpty(second)
      known.resolve([had])
      ok(await begun)
      ok(await bound)
      assert.equal(ok(await labelled), 'tn_had')
      assert.equal(refusedWith(await again), 800, 'it begins once')
      assert.equal(second.load.sessions, 1)
    }
  })

  test('waits for its turn when many begin, and keeps it until its requests are answered', async () => {
    const known = Promise.withResolvers<readonly []>()
    let asked = 0
    const returning = () => {
      asked++
      return known.promise
    }
    const { second, agent, session } = await withStandby({ answers: { returning } })
    const { agent: leaving } = await second.online(asStandby(session))
    const { turns } = second.tunnels.standbys
    const others = await Promise.all(Array.from({ length: turns.atOnce }, () => turns.take()))
    const [begun, bound] = [agent.begin(), agent.bind()]
    leaving.begin().catch(() => {})
    await Promise.all([agent.pinged(), leaving.pinged()])
    assert.equal(asked, 0)
    await leaving.leave()
    await until(() => second.tunnels.standbys.size === 1)
    for (const over of others) over()
    await until(() => asked === 1)
    assert.equal(turns.taken, 1, 'it has a turn, and the standby that left took none')
    known.resolve([])
    ok(await begun)
    ok(await bound)
    await until(() => turns.taken === 0)
    assert.equal(asked, 1)
  })

  test('does not begin while the database is down, and its requests are lost', async () => {
    const returning = async () => {
      throw new Error('the database is away')
    }
    const { second, agent } = await withStandby({ answers: { returning } })
    const asked = [agent.begin(), agent.bind()]
    for (const each of asked) await assert.rejects(each)
    await agent.closed
    isEmpty(second)
    const { size, turns } = second.tunnels.standbys
    assert.deepEqual([size, turns.taken], [0, 0])
  })

  test('ends when its request to begin is malformed', async () => {
    const { second, agent } = await withStandby()
    await assert.rejects(agent.call(streamTypes.begin, { Moving: 'yes' }))
    await agent.closed
    isEmpty(second)
  })

  test('is told where other nodes are when it begins, which may have changed since it connected', async () => {
    const addresses = ['a.example.com:7443']
    const { agent, auth } = await withStandby({ nodes: { id: 'nd_2', addresses: () => addresses } })
    assert.deepEqual(auth.nodeAddresses, ['a.example.com:7443'])
    addresses[0] = 'b.example.com:7443'
    assert.deepEqual(ok(await agent.begin()).nodeAddresses, ['b.example.com:7443'])
  })

  test('whose credential is gone by then opens nothing', async () => {
    const { second, agent } = await withStandby()
    second.credentials.all.delete(TOKEN)
    await agent.begin()
    await agent.closed
    isEmpty(second)
  })

  test('ends when its credential is gone, but not when the lookup fails', async () => {
    const { second, agent } = await withStandby()
    second.credentials.isAway = true
    await second.tunnels.standbys.check()
    second.credentials.isAway = false
    await second.tunnels.standbys.check()
    assert.equal(second.tunnels.standbys.size, 1)
    second.credentials.all.delete(TOKEN)
    await second.tunnels.standbys.check()
    await agent.closed
    assert.equal(second.tunnels.standbys.size, 0)
  })

  test('ends when an IP restriction no longer admits its address', async () => {
    const { second, agent } = await withStandby()
    second.tunnels.dropUnadmitted(() => true)
    assert.equal(second.tunnels.standbys.size, 1)
    second.tunnels.dropUnadmitted(() => false)
    await agent.closed
    assert.equal(second.tunnels.standbys.size, 0)
  })

  test('ends when its agent is silent', async () => {
    const { second, session } = await twoNodes()
    const silent = asStandby(session, { heartbeatIntervalMs: 10, heartbeatToleranceMs: 10 })
    const { agent } = await second.online(silent, { isAlive: false })
    await agent.closed
    assert.equal(second.tunnels.standbys.size, 0)
  })

  test('is asked to move by a node that stops, and does not begin there', async () => {
    const { second, agent, session } = await withStandby()
    const { agent: slow } = await second.online(asStandby(session))
    await second.tunnels.tellToMove(['127.0.0.1:1'])
    await until(() => agent.moves === 1 && slow.moves === 1)
    assert.equal(second.tunnels.moving, 2)
    await agent.leave()
    await until(() => second.tunnels.moving === 1)
    await assert.rejects(slow.begin())
    await slow.closed
    await until(() => second.tunnels.moving === 0)
    isEmpty(second)
  })
})
