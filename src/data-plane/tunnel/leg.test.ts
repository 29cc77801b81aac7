import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { makeIdentity } from '../../../test/support/make-certificate.ts'
import { Sealer } from '../../lib/secrets/seal.ts'
import { Secret } from '../../lib/secrets/secret.ts'
import type { AuthAnswer, AuthRequest } from '../../link/wire/messages/auth.ts'
import { readProxyHeader } from '../../link/wire/proxy-header.ts'
import { WireError } from '../../link/wire/wire-error.ts'
import { DialFault, type DialRequest } from '../../model/dial.ts'
import {
  ok,
  refusedWith,
  TestAgentListener,
  type TestAgentListenerOptions,
  until,
} from './testing/test-agent-listener.ts'

const identity = await makeIdentity()

/** Numbers of refusals. */
const INVALID = 109
const HELD = 108
const AWAY = 802

const dialled: DialRequest = {
  tunnelId: 'tn_1',
  ip: '192.0.2.1',
  port: 4000,
  proto: 'https',
  edge: 'none',
  passthroughTls: false,
}

const asLeg = ({ clientId, cookie }: AuthAnswer, more: Partial<AuthRequest> = {}): Partial<AuthRequest> => ({
  clientId,
  cookie,
  leg: 1,
  canMove: true,
  heldPlanes: ['w1'],
  ...more,
})

/** Two data planes of one server: `first` has a session, and `second` none. */
async function twoPlanes(options: TestAgentListenerOptions = {}) {
  const seal = new Sealer(randomBytes(32))
  const open = async (planeId: string, more: TestAgentListenerOptions = {}) => {
    const listener = await new TestAgentListener(identity, { seal, planeId, planeCount: 2, ...more }).listen()
    after(() => listener.close())
    return listener
  }
  const changed: string[] = []
  const control = { isAway: false, meanwhile() {} }
  const first = await open('w1')
  const second = await open('w2', {
    answers: {
      mayHaveLeg({ sessionId, credentialId }) {
        if (control.isAway) throw new Error('the control plane is away')
        const mayHave = first.registry.liveSession(sessionId)?.credentialId === credentialId
        control.meanwhile()
        return mayHave
      },
    },
    remote: { legChanged: (sessionId) => void changed.push(sessionId) },
    ...options,
  })
  const { agent, auth } = await first.online({ canMove: true })
  return { first, second, agent, auth, changed, control }
}

const noSessions = (listener: TestAgentListener) =>
  assert.deepEqual(listener.registry.counts, { sessions: 0, tunnels: 0, endpoints: 0 })

describe('a leg', () => {
  test('is let in where its session is not, and carries its visitors', async () => {
    const { second, auth, changed } = await twoPlanes()
    assert.deepEqual([auth.planeId, auth.planeCount], ['w1', 2])
    assert.equal(second.tunnels.legs.open(auth.clientId, dialled), undefined)
    const leg = await second.online(asLeg(auth))
    assert.deepEqual([leg.auth.clientId, leg.auth.planeId], [auth.clientId, 'w2'])
    assert.deepEqual(changed, [auth.clientId])
    noSessions(second)

    const stream = await second.tunnels.legs.open(auth.clientId, dialled)
    assert.ok(stream && !(stream instanceof DialFault))
    await until(() => leg.agent.visitors.length === 1)
    const [visitor] = leg.agent.visitors
    assert.ok(visitor)
    const header = await new Promise<unknown>((resolve) => readProxyHeader(visitor, resolve))
    assert.equal((header as { id: string }).id, 'tn_1') // just read
    assert.equal(second.load.connections, 1)

    await leg.agent.leave()
    await until(() => second.tunnels.legs.all.length === 0)
    assert.deepEqual(changed, [auth.clientId, auth.clientId])
    assert.equal(second.tunnels.legs.open(auth.clientId, dialled), undefined)
    assert.ok(second.load.bytesIn > 0, 'its bytes still count')
  })

  test('names data planes only to our own agents', async () => {
    const { first } = await twoPlanes()
    const { auth } = await first.online()
    assert.deepEqual([auth.planeId, auth.planeCount], ['', 1])
  })

  test('may make no calls', async () => {
    const { second, auth } = await twoPlanes()
    const { agent } = await second.online(asLeg(auth))
    assert.equal(refusedWith(await agent.bind()), 801)
    assert.equal(refusedWith(await agent.startLabels({ a: 'b' })), 801)
    noSessions(second)
    assert.deepEqual(second.endpoints.addresses, [])
  })

  test('is refused, and becomes no session, without proof that it belongs to an online session', async () => {
    const { first, second, auth, control } = await twoPlanes()
    const other = 'b'.repeat(40)
    for (const listener of [first, second]) listener.credentials.all.set(other, { id: 'cr_other', acl: [] })
    const stranger = await first.online({ authtoken: new Secret(other) })
    const gone = await first.online()
    await gone.agent.leave()
    await until(() => first.load.sessions === 2)
    const hostile: [name: string, request: Partial<AuthRequest>, number: number][] = [
      ["another's session with its own cookie", asLeg(auth, { cookie: stranger.auth.cookie }), INVALID],
      ["another's session and cookie with its own authtoken", asLeg(auth, { authtoken: new Secret(other) }), INVALID],
      ['no cookie', asLeg(auth, { cookie: new Secret('') }), INVALID],
      ['no session', asLeg(auth, { clientId: '' }), INVALID],
      ['a session that has ended', asLeg(gone.auth), INVALID],
      ['a number that only the first connection has', asLeg(auth, { leg: 0 }), INVALID],
      ['one more than there may be', asLeg(auth, { leg: 16 }), INVALID],
      ['an authtoken that nobody has', asLeg(auth, { authtoken: new Secret('c'.repeat(40)) }), 107],
      ['a plane that has one already', asLeg(auth, { heldPlanes: ['w1', 'w2'] }), HELD],
    ]
    for (const [name, request, number] of hostile) {
      assert.equal(refusedWith(await second.agent().authenticate(request)), number, name)
    }
    assert.equal(refusedWith(await first.agent().authenticate(asLeg(auth, { heldPlanes: [] }))), HELD, 'its own plane')
    control.isAway = true
    assert.equal(refusedWith(await second.agent().authenticate(asLeg(auth))), AWAY)
    control.isAway = false
    control.meanwhile = () => second.tunnels.legs.end(auth.clientId, 'its session is over')
    assert.equal(refusedWith(await second.agent().authenticate(asLeg(auth))), INVALID, 'the session ended meanwhile')
    noSessions(second)
    assert.equal(second.tunnels.legs.all.length, 0)
  })

  test('of an agent that is not ours is a session of its own', async () => {
    const { second, auth } = await twoPlanes()
    const { heldPlanes: _, ...theirs } = asLeg(auth)
    const { auth: own } = await second.online(theirs)
    assert.notEqual(own.clientId, auth.clientId)
    assert.equal(second.load.sessions, 1)
  })

  test('is the only one of its session at a plane: the last replaces earlier ones', async () => {
    const { second, auth } = await twoPlanes({ limits: { unproven: 5000, unprovenPerIp: 5000 } })
    let open = 0
    for (let round = 0; round < 20; round++) {
      const agents = Array.from({ length: 50 }, () => second.agent())
      for (const agent of agents) {
        open++
        void agent.closed.then(() => open--)
      }
      await Promise.all(agents.map(async (agent) => ok(await agent.authenticate(asLeg(auth)))))
      assert.equal(second.tunnels.legs.all.length, 1)
    }
    await until(() => open === 1)
    noSessions(second)
  })

  test('ends with its session, its credential, its address, and the server', async () => {
    const { second, auth } = await twoPlanes()
    const [{ id: credentialId = '' } = {}] = second.credentials.all.values()
    const over: [string, () => unknown][] = [
      ['its session is over', () => second.tunnels.legs.end(auth.clientId, 'its session is over')],
      ['its address is not admitted any more', () => second.tunnels.dropUnadmitted(() => false)],
      ['its credential is not valid any more', () => second.tunnels.endSessionsOf({ credentialId, reason: 'deleted' })],
      ['the server is stopping', () => second.tunnels.endAll('the server is stopping')],
    ]
    for (const [name, end] of over) {
      const { agent } = await second.online(asLeg(auth))
      await until(() => second.tunnels.legs.all.length === 1)
      end()
      assert.ok(!((await agent.closed) instanceof WireError), name)
      assert.equal(second.tunnels.legs.all.length, 0, name)
    }
    // The credential of a leg, too, is checked again once it is let in.
    second.credentials.current = async () => undefined
    const { agent } = await second.online(asLeg(auth))
    await agent.closed
    assert.equal(second.tunnels.legs.all.length, 0)
  })

  test('ends when its session moves to the same plane and ends there', async () => {
    const { second, auth } = await twoPlanes()
    const leg = await second.online(asLeg(auth))
    const { clientId, cookie } = auth
    const moved = await second.online({ clientId, cookie, isMoving: true })
    assert.equal(leg.agent.mux.isClosed, false)
    await moved.agent.leave()
    await leg.agent.closed
    assert.equal(second.tunnels.legs.all.length, 0)
  })

  test('that is asked to move gets no more visitors, and keeps its present ones', async () => {
    const { second, auth } = await twoPlanes()
    const { agent } = await second.online(asLeg(auth))
    const visitor = await second.tunnels.legs.open(auth.clientId, dialled)
    assert.ok(visitor && !(visitor instanceof DialFault))
    await second.tunnels.tellToMove()
    await until(() => agent.moves === 1)
    assert.equal(second.tunnels.legs.open(auth.clientId, dialled), undefined)
    assert.equal(second.tunnels.moving, 1)
    assert.equal(second.load.connections, 1)
    second.tunnels.legs.end(auth.clientId, 'its session is over')
    await agent.closed
    assert.equal(second.tunnels.moving, 0)
  })

  test('that gives no sign of life is ended', async () => {
    const { second, auth } = await twoPlanes({ limits: { leastHeartbeatMs: 30 } })
    const silent = { heartbeatIntervalMs: 10, heartbeatToleranceMs: 10 }
    const { agent } = await second.online(asLeg(auth, silent), { isAlive: false })
    await agent.closed
    assert.equal(second.tunnels.legs.all.length, 0)
  })
})
