/** Nodes on one database: sessions and names at any of them. */
import assert from 'node:assert/strict'
import { after, afterEach, beforeEach, describe, test } from 'node:test'
import { eachStore } from '../../../test/support/databases.ts'
import { until } from '../../../test/support/until.ts'
import { createLog } from '../../lib/log/create-log.ts'
import type { OtherNode } from '../../link/planes/plane-calls.ts'
import { Refusal } from '../../model/errors.ts'
import {
  endpointTunnel,
  labelTunnel,
  onlineSession,
  poolReservation,
  poolTunnel,
  testReservation,
} from '../directory/testing/test-online.ts'
import { Follower } from '../store/feed-follower.ts'
import { openStore, type Store } from '../store/store.ts'
import { trafficOfAll } from '../traffic/traffic-nodes.ts'
import { type Nodes, TestNode } from './testing/test-node.ts'

const log = createLog({ level: 'silent', format: 'json', destination: { write() {} } })
const NAME = 'a.example.com'
const PLACE = `secure:${NAME}`
const page = { limit: 100 }

describe('nodes on one database', () => {
  eachStore((databases) => {
    let store: Store
    let nodes: Nodes
    const followers: Follower[] = []
    beforeEach(async () => {
      await store?.close()
      store = await openStore(await databases.url())
      nodes = new Map()
    })
    afterEach(async () => {
      for (const follower of followers.splice(0)) await follower.stop()
      for (const node of nodes.values()) await node.stop()
    })
    after(() => store.close())

    /** A node, and its data plane. */
    const start = async (id: string) => {
      const node = new TestNode(nodes, store, id)
      await node.cluster.start()
      const follower = new Follower({ store, followed: node.cluster.moved(), log })
      await follower.start()
      followers.push(follower)
      return { node, plane: await node.plane() }
    }
    /** Two nodes that know of each other. */
    const two = async () => {
      const [a, b] = [await start('nd_a'), await start('nd_b')]
      await a.node.cluster.renew()
      return { a, b }
    }
    type Started = Awaited<ReturnType<typeof start>>

    /** An agent connects and binds a name; whether it got it. */
    const bind = async ({ plane }: Started, tunnelId: string, sessionId: string, name = NAME): Promise<boolean> => {
      plane.link.tell('sessionStarted', onlineSession(sessionId))
      const isOurs = await plane.link.ask('claim', testReservation(tunnelId, sessionId, name))
      if (isOurs) await plane.link.ask('tunnelStarted', endpointTunnel(tunnelId, sessionId, name))
      return isOurs
    }
    const lookUp = async ({ node }: Started, place = PLACE) => {
      const [found] = await node.cluster.lookUps.addresses([place])
      return found && { tunnelId: found.tunnel.tunnelId, nodeId: found.tunnel.nodeId }
    }

    test('the traffic history covers all nodes and names those that did not answer', async () => {
      const { a, b } = await two()
      for (const { node } of [a, b]) for (let look = 0; look < 2; look++) await node.history.look()
      const { cluster, history } = a.node
      const traffic = () =>
        trafficOfAll('minutes', { name: 'nd_a', own: (period) => history.points(period), cluster, log })
      const whole = await traffic()
      assert.deepEqual([whole.nodes, whole.missing], [['nd_a', 'nd_b'], []])
      assert.ok(Array.isArray(whole.points) && whole.points.length > 0)
      b.node.isCut = true
      const part = await traffic()
      assert.deepEqual([part.nodes, part.missing], [['nd_a'], ['nd_b']])
    })

    test('a certificate challenge is answered by every other node, or it is known that some does not', async () => {
      const { a, b } = await two()
      const challenge = { name: NAME, kind: 'http-01', token: 't', answer: 't.key' } as const
      assert.equal(await a.node.cluster.showChallenge(challenge), true)
      assert.deepEqual([a.plane.challenges, b.plane.challenges], [[], [NAME]])
      const strange = { ...challenge, kind: 'dns-02' } as unknown as typeof challenge
      assert.equal(await a.node.cluster.showChallenge(strange), false)
      b.node.isCut = true
      assert.equal(await a.node.cluster.showChallenge(challenge), false)
      assert.deepEqual(b.plane.challenges, [NAME])
    })

    test('a name has one holder across all nodes', async () => {
      const { a, b } = await two()
      const outcomes = await Promise.all([bind(a, 'tn_1', 'ts_1'), bind(b, 'tn_2', 'ts_2')])
      assert.deepEqual(outcomes.toSorted(), [false, true])
      const [winner, loser] = outcomes[0] ? [a, b] : [b, a]
      assert.equal(await bind(loser, 'tn_3', 'ts_3'), false)
      assert.equal((await lookUp(loser))?.nodeId, winner.node.id)
      assert.equal(await lookUp(winner), undefined)
    })

    test('each name goes to one of many claims at once', async () => {
      const { a, b } = await two()
      const names = Array.from({ length: 50 }, (_, i) => `n${i}.example.com`)
      const reservations = names.flatMap((name, i) => [a, b].map((at, j) => bind(at, `tn_${i}_${j}`, `ts_${j}`, name)))
      const granted = (await Promise.all(reservations)).filter((isOurs) => isOurs)
      assert.equal(granted.length, names.length)
    })

    test('a name is free again when its tunnel ends, and when its node stops', async () => {
      const { a, b } = await two()
      assert.equal(await bind(a, 'tn_1', 'ts_1'), true)
      a.plane.link.tell('tunnelEnded', { tunnelId: 'tn_1' })
      await until('it is free', async () => (await lookUp(b)) === undefined)
      assert.equal(await bind(b, 'tn_2', 'ts_2'), true)
      nodes.delete('nd_b')
      await b.node.stop()
      assert.equal(await bind(a, 'tn_3', 'ts_3'), true)
    })

    test('a name that is given up before its claim is written is free', async () => {
      const a = await start('nd_a')
      const { promise: isReleased, resolve: release } = Promise.withResolvers<void>()
      const { promise: isLocked, resolve: locked } = Promise.withResolvers<void>()
      const slow = store.write(async ({ online }) => {
        await online.lockAddresses(['secure:slow.example.com'])
        locked()
        await isReleased
      })
      await isLocked
      const before = a.plane.link.ask('claim', testReservation('tn_0', 'ts_0', 'slow.example.com'))
      const reserved = a.plane.link.ask('claim', testReservation('tn_1', 'ts_1', NAME))
      const addresses = () => a.node.planes.directory.heldAddresses(PLACE)
      await until('it is claimed', () => addresses().length === 1)
      a.plane.link.tell('unclaim', testReservation('tn_1', 'ts_1', NAME))
      await until('it is given up', () => addresses().length === 0)
      release()
      await slow
      assert.deepEqual([await before, await reserved], [true, false])
      const [held] = await store.read(({ online }) => online.holders([PLACE]))
      assert.deepEqual(held?.holders ?? [], [])
    })

    test('the same agent gets its name at another node at once, and the first one lets go', async () => {
      const { a, b } = await two()
      await bind(a, 'tn_1', 'ts_1')
      assert.deepEqual(await b.plane.link.ask('returning', { sessionId: 'ts_1' }), [])
      assert.deepEqual(a.plane.ended, ['ts_1'])
      assert.equal(await bind(b, 'tn_1', 'ts_1'), true)
      assert.equal((await lookUp(a))?.nodeId, 'nd_b')
    })

    test('a node that cannot be reached learns from the feed that its agent has gone elsewhere', async () => {
      const { a, b } = await two()
      await bind(a, 'tn_1', 'ts_1')
      await a.node.cluster.presence().sessions(page)
      a.node.isCut = true
      assert.deepEqual(await b.plane.link.ask('returning', { sessionId: 'ts_1' }), [])
      assert.deepEqual(a.plane.ended, [])
      assert.equal(await bind(b, 'tn_1', 'ts_1'), true)
      await until('it is ended', () => a.plane.ended.includes('ts_1'))
      assert.equal((await lookUp(a))?.nodeId, 'nd_b')
    })

    test('an unreachable node is not called again for each agent that comes from there', async () => {
      const { a, b } = await two()
      const sessions = Array.from({ length: 20 }, (_, i) => `ts_${i}`)
      await Promise.all(sessions.map((id, i) => bind(a, `tn_${i}`, id, `n${i}.example.com`)))
      await a.node.cluster.presence().sessions(page)
      a.node.isCut = true
      for (const sessionId of sessions) await b.plane.link.ask('returning', { sessionId })
      const asked = b.node.calls
      assert.ok(asked > 0 && asked < sessions.length, `it was asked ${asked} times`)
      a.node.isCut = false
      await until('it is asked again', async () => {
        await b.plane.link.ask('returning', { sessionId: 'ts_3' })
        return a.plane.ended.includes('ts_3')
      })
    })

    test('a node that takes over a session does not write it again when the feed reports the move', async () => {
      const a = await start('nd_a')
      const node = new TestNode(nodes, store, 'nd_b')
      await node.cluster.start()
      const b = { node, plane: await node.plane() }
      await bind(a, 'tn_1', 'ts_1')
      assert.equal(await bind(b, 'tn_1', 'ts_1'), true)
      await node.cluster.presence().sessions(page)
      const changes = (await store.feed.since(0)) ?? []
      assert.deepEqual(
        changes.map(({ kind, id }) => [kind, id]),
        [['session', 'ts_1']],
      )
      await node.cluster.moved().apply(changes)
      assert.equal(node.cluster.metrics.waitingRows, 0)
      // On a second report the session may have moved on.
      await node.cluster.moved().apply(changes)
      assert.notEqual(node.cluster.metrics.waitingRows, 0)
    })

    test('a leaving node keeps the tunnels of an agent until the agent has them elsewhere and gives them up', async () => {
      const { a, b } = await two()
      await bind(a, 'tn_1', 'ts_1')
      await a.plane.link.ask('tunnelStarted', labelTunnel('tn_2', 'ts_1', { app: 'shop' }))
      await a.node.cluster.leaving()
      assert.deepEqual(await a.plane.link.ask('leaving', null), { isNode: true })
      // Works whether or not the feed was faster.
      const [former] = await b.plane.link.ask('returning', { sessionId: 'ts_1', isMoving: true })
      assert.equal(former?.id, 'tn_2')
      assert.equal(await bind(b, 'tn_1', 'ts_1'), true)
      await b.plane.link.ask('tunnelStarted', labelTunnel('tn_2', 'ts_1', { app: 'shop' }))
      // The node rechecks all that it has, and finds that another node has it by now.
      await a.node.cluster.moved().load()
      await a.node.cluster.presence().sessions(page)
      assert.deepEqual([a.plane.ended, a.plane.stopped], [[], []])
      for (const tunnelId of ['tn_1', 'tn_2']) a.plane.link.tell('tunnelEnded', { tunnelId })
      a.plane.link.tell('sessionEnded', { sessionId: 'ts_1' })
      await until('it is gone', () => a.node.planes.directory.sessionCount === 0)
      for (const { node } of [a, b]) {
        assert.deepEqual(ids(await node.cluster.presence().sessions(page)), ['ts_1'])
        assert.deepEqual(ids(await node.cluster.presence().tunnels(page)), ['tn_2', 'tn_1'])
      }
      assert.equal((await lookUp(a))?.nodeId, 'nd_b')
    })

    test('an agent that moves keeps its tunnels at a node that was too late to say that it leaves', async () => {
      const { a, b } = await two()
      await bind(a, 'tn_1', 'ts_1')
      await a.node.cluster.presence().sessions(page)
      assert.deepEqual(await b.plane.link.ask('returning', { sessionId: 'ts_1', isMoving: true }), [])
      void a.node.cluster.leaving()
      assert.equal(await bind(b, 'tn_1', 'ts_1'), true)
      await a.node.cluster.moved().load()
      await a.node.cluster.presence().sessions(page)
      assert.deepEqual([a.plane.ended, a.plane.stopped], [[], []])
    })

    test('other nodes learn at once that a node leaves, and where the rest accept agents', async () => {
      const { a, b } = await two()
      assert.deepEqual(await a.plane.link.ask('leaving', null), { isNode: false })
      assert.deepEqual(b.node.cluster.others.map(leavingAt), [['nd_a', ['nd_a.example.com:7443'], false]])
      await a.node.cluster.leaving()
      await until('it is known', () => b.node.cluster.others[0]?.isLeaving === true)
      assert.deepEqual(a.node.cluster.others.map(leavingAt), [['nd_b', ['nd_b.example.com:7443'], false]])
    })

    test('an agent gets the ids of its label tunnels back at another node', async () => {
      const { a, b } = await two()
      a.plane.link.tell('sessionStarted', onlineSession('ts_1'))
      await a.plane.link.ask('tunnelStarted', labelTunnel('tn_1', 'ts_1', { app: 'shop', team: 'x' }))
      await a.node.cluster.presence().sessions(page)
      const [former] = await b.plane.link.ask('returning', { sessionId: 'ts_1' })
      assert.deepEqual([former?.id, former?.labels], ['tn_1', { app: 'shop', team: 'x' }])
    })

    test('lists show what is online at all nodes, newest first, page by page', async () => {
      const { a, b } = await two()
      for (let i = 1; i <= 4; i++) await bind(i % 2 === 0 ? a : b, `tn_${i}`, `ts_${i}`, `n${i}.example.com`)
      b.plane.link.tell('sessionEnded', { sessionId: 'ts_3' })
      for (const { node } of [a, b]) {
        const presence = node.cluster.presence()
        await until('it is listed', async () => (await presence.sessions(page)).length === 3)
        assert.deepEqual(ids(await presence.sessions(page)), ['ts_4', 'ts_2', 'ts_1'])
        assert.deepEqual(ids(await presence.tunnels({ limit: 2 })), ['tn_4', 'tn_2'])
        assert.deepEqual(ids(await presence.tunnels({ limit: 2, beforeId: 'tn_2' })), ['tn_1'])
        assert.deepEqual(ids(await presence.endpoints(page)), ['ep_tn_4', 'ep_tn_2', 'ep_tn_1'])
        assert.equal((await presence.endpoint('ep_tn_1'))?.publicUrl, 'https://n1.example.com')
        assert.equal((await presence.tunnel('tn_2'))?.sessionId, 'ts_2')
        assert.equal(await presence.session('ts_3'), undefined)
      }
    })

    test('a tunnel with labels is online and listed even while names are claimed without a pause', async () => {
      const a = await start('nd_a')
      const reservations: Promise<boolean>[] = []
      const reserving = setInterval(() => {
        const n = reservations.length
        reservations.push(a.plane.link.ask('claim', testReservation(`tn_c${n}`, `ts_c${n}`, `c${n}.example.com`)))
      }, 1)
      try {
        await until('the first is granted', () => reservations[0])
        a.plane.link.tell('sessionStarted', onlineSession('ts_1'))
        await a.plane.link.ask('tunnelStarted', labelTunnel('tn_1', 'ts_1', { app: 'shop' }), { withinMs: 10_000 })
        assert.equal((await a.node.cluster.presence().tunnel('tn_1'))?.id, 'tn_1')
      } finally {
        clearInterval(reserving)
      }
      assert.ok((await Promise.all(reservations)).every((isGranted) => isGranted))
    })

    test('groups have members at all nodes', async () => {
      const { a, b } = await two()
      for (const [i, { plane }] of [a, b, b].entries()) {
        plane.link.tell('sessionStarted', onlineSession(`ts_${i}`))
        const labels = { app: 'shop', place: String(i) }
        await plane.link.ask('tunnelStarted', labelTunnel(`tn_${i}`, `ts_${i}`, labels))
      }
      for (const { node } of [a, b]) {
        assert.deepEqual(await node.cluster.presence().tunnelsWith({ app: 'shop' }), ['tn_0', 'tn_1', 'tn_2'])
      }
      const found = await a.node.cluster.lookUps.group({ app: 'shop' })
      assert.deepEqual(found.map(({ tunnelId }) => tunnelId).toSorted(), ['tn_1', 'tn_2'])
      const one = await a.node.cluster.lookUps.group({ app: 'shop', place: '2' })
      assert.deepEqual(
        one.map(({ tunnelId, nodeId }) => [tunnelId, nodeId]),
        [['tn_2', 'nd_b']],
      )
    })

    test('a command reaches an agent at any node', async () => {
      const { a, b } = await two()
      await bind(a, 'tn_1', 'ts_1')
      for (const { node } of [a, b]) await node.cluster.presence().command('ts_1', 'stop')
      assert.deepEqual(
        a.plane.heard.filter((call) => call === 'command'),
        ['command', 'command'],
      )
      await assert.rejects(b.node.cluster.presence().command('ts_2', 'stop'), (error: unknown) => {
        return error instanceof Refusal && error.code === 'NOT_FOUND'
      })
    })

    test('a node that comes back after its lease gives up what others have by now, and keeps the rest', async () => {
      const { a, b } = await two()
      await bind(a, 'tn_1', 'ts_1')
      await bind(a, 'tn_2', 'ts_2', 'b.example.com')
      await a.node.cluster.presence().sessions(page)
      await store.write((writer) => writer.online.leave('nd_a'))
      assert.deepEqual(await b.node.cluster.presence().sessions(page), [])
      assert.equal(await bind(b, 'tn_3', 'ts_3'), true)
      await a.node.cluster.renew()
      await until('it lets go', () => a.plane.stopped.includes('tn_1'))
      assert.deepEqual(a.plane.stopped, ['tn_1'])
      await until('the rest is announced', async () => (await lookUp(b, 'secure:b.example.com'))?.tunnelId === 'tn_2')
      assert.deepEqual(ids(await b.node.cluster.presence().sessions(page)), ['ts_3', 'ts_2', 'ts_1'])
    })

    test('a new control plane of a node keeps what is online and forgets what is not', async () => {
      const { a, b } = await two()
      await bind(a, 'tn_1', 'ts_1')
      await bind(a, 'tn_2', 'ts_2', 'b.example.com')
      await a.node.cluster.presence().sessions(page)
      await a.node.vanish()
      const next = new TestNode(nodes, store, 'nd_a')
      await next.cluster.start()
      await next.plane({ sessions: [onlineSession('ts_1')], tunnels: [endpointTunnel('tn_1', 'ts_1', NAME)] })
      await next.cluster.reconcile()
      const presence = b.node.cluster.presence()
      await until('the other is gone', async () => (await lookUp(b, 'secure:b.example.com')) === undefined)
      assert.deepEqual(ids(await presence.sessions(page)), ['ts_1'])
      assert.equal((await lookUp(b))?.tunnelId, 'tn_1')
    })

    test('a node knows the sessions that were there, and no others', async () => {
      const { a, b } = await two()
      assert.equal(await bind(a, 'tn_1', 'ts_1'), true)
      a.plane.link.tell('sessionEnded', { sessionId: 'ts_1' })
      await until('it is over', async () => (await lookUp(b)) === undefined)
      assert.deepEqual([a.node.cluster.knows('ts_1'), b.node.cluster.knows('ts_1')], [true, false])
    })

    describe('a pool', () => {
      type Terms = Parameters<typeof poolReservation>[3]
      const join = async ({ plane }: Started, n: number, terms?: Terms): Promise<boolean> => {
        plane.link.tell('sessionStarted', onlineSession(`ts_${n}`))
        const isIn = await plane.link.ask('claim', poolReservation(`tn_${n}`, `ts_${n}`, NAME, terms))
        if (isIn) await plane.link.ask('tunnelStarted', poolTunnel(`tn_${n}`, `ts_${n}`, NAME, terms))
        return isIn
      }
      /** The members at other nodes than this. */
      const members = async ({ node }: Started) => {
        const found = await node.cluster.lookUps.group({ '': 'ep_pool' })
        return found.map(({ tunnelId, version }) => `${tunnelId} ${version}`).toSorted()
      }

      test('has members at all nodes, and each node knows those of the others', async () => {
        const { a, b } = await two()
        // At once, so that claims of one place meet in a batch.
        assert.deepEqual(await Promise.all([join(a, 1), join(a, 2), join(b, 3)]), [true, true, true])
        for (const { node } of [a, b]) {
          await until('all are listed', async () => (await node.cluster.presence().endpoints(page)).length === 3)
        }
        assert.deepEqual(await members(a), ['tn_3 a.b.c'])
        assert.deepEqual(await members(b), ['tn_1 a.b.c', 'tn_2 a.b.c'])
        assert.equal((await lookUp(a))?.nodeId, 'nd_b')
        assert.equal((await lookUp(b))?.nodeId, 'nd_a')
      })

      test('has a member for other nodes as soon as its agent is answered', async () => {
        const { a, b } = await two()
        assert.equal(await join(a, 1), true)
        // It moves: its agent gives up what it has at the first when the second answers.
        assert.equal(await join(b, 1), true)
        assert.deepEqual(await members(a), ['tn_1 a.b.c'])
      })

      test('exists while one member does', async () => {
        const { a, b } = await two()
        for (const [at, n] of [
          [a, 1],
          [a, 2],
          [b, 3],
        ] as const) {
          assert.equal(await join(at, n), true)
        }
        a.plane.link.tell('tunnelEnded', { tunnelId: 'tn_1' })
        await until('it is gone', async () => (await members(b)).length === 1)
        a.plane.link.tell('tunnelEnded', { tunnelId: 'tn_2' })
        await until('both are gone', async () => (await lookUp(b)) === undefined)
        assert.equal((await lookUp(a))?.tunnelId, 'tn_3')
        assert.equal(await bind(a, 'tn_4', 'ts_4'), false)
        b.plane.link.tell('tunnelEnded', { tunnelId: 'tn_3' })
        await until('it is free', async () => (await lookUp(a)) === undefined)
        assert.equal(await bind(a, 'tn_5', 'ts_5'), true)
      })

      test('refuses a member that differs, and says how', async () => {
        const { a, b } = await two()
        assert.equal(await join(a, 1), true)
        const others = [
          [{ version: 'x.b.c' }, 'protocol'],
          [{ version: 'a.x.c' }, 'policy'],
          [{ version: 'a.b.x' }, 'guards'],
          [{ ownerId: 'usr_2' }, 'owner'],
        ] as const
        for (const at of [a, b]) {
          for (const [terms, difference] of others) {
            assert.equal(await join(at, 2, terms), false)
            const asked = poolReservation('tn_2', 'ts_2', NAME, terms)
            assert.equal(await at.plane.link.ask('whyTaken', asked), difference)
          }
          assert.equal(await bind(at, 'tn_3', 'ts_3'), false)
          assert.equal(await at.plane.link.ask('whyTaken', testReservation('tn_3', 'ts_3', NAME)), 'asks alone')
        }
        assert.equal(await bind(a, 'tn_4', 'ts_4', 'b.example.com'), true)
        assert.equal(await b.plane.link.ask('whyTaken', poolReservation('tn_5', 'ts_5', 'b.example.com')), 'is alone')
      })

      test('is free when none of its members gives a sign of life', async () => {
        const { a, b } = await two()
        for (const n of [1, 2]) assert.equal(await join(a, n), true)
        assert.equal(await b.node.cluster.proveAlive(PLACE), false)
        assert.equal(a.plane.heard.filter((name) => name === 'proveAlive').length, 2)
        for (const n of [1, 2]) a.plane.link.tell('sessionEnded', { sessionId: `ts_${n}` })
        await until('it is free', () => b.node.cluster.proveAlive(PLACE))
        assert.equal(await bind(b, 'tn_3', 'ts_3'), true)
      })

      test('keeps the membership of an agent that comes back at another node', async () => {
        const { a, b } = await two()
        for (const n of [1, 2]) assert.equal(await join(a, n), true)
        await a.node.cluster.presence().sessions(page)
        await b.plane.link.ask('returning', { sessionId: 'ts_1' })
        assert.equal(await join(b, 1), true)
        await until('it is there', async () => (await members(a)).length === 1)
        assert.deepEqual(await members(a), ['tn_1 a.b.c'])
        await until('and not here', async () => (await members(b)).length === 1)
        assert.deepEqual(await members(b), ['tn_2 a.b.c'])
      })

      test('is announced again after a lease was lost, unless others serve something else by then', async () => {
        const { a, b } = await two()
        for (const n of [1, 2]) assert.equal(await join(a, n), true)
        await a.node.cluster.presence().sessions(page)
        await store.write((writer) => writer.online.leave('nd_a'))
        assert.equal(await join(b, 3), true)
        await a.node.cluster.renew()
        await until('they are back', async () => (await members(b)).length === 2)
        await store.write((writer) => writer.online.leave('nd_a'))
        b.plane.link.tell('tunnelEnded', { tunnelId: 'tn_3' })
        await until('it is free', async () => (await lookUp(a)) === undefined)
        assert.equal(await join(b, 4, { version: 'x.y.z' }), true)
        await a.node.cluster.renew()
        await until('they let go', () => a.plane.stopped.length >= 2)
        assert.deepEqual(a.plane.stopped.toSorted(), ['tn_1', 'tn_2'])
      })
    })

    test('what is served at an address is sealed in the database', async () => {
      const { a } = await two()
      await bind(a, 'tn_1', 'ts_1')
      const [row] = await store.read(({ online }) => online.holders([PLACE]))
      assert.match(row?.config ?? '', /^sealed:/)
    })
  })
})

function leavingAt({ nodeId, agentAddresses, isLeaving }: OtherNode) {
  return [nodeId, agentAddresses, isLeaving]
}

function ids(all: readonly { readonly id: string }[]): string[] {
  return all.map(({ id }) => id)
}
