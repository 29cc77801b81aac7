/** Who gets an address of a node that has lost its lease (D56). */
import assert from 'node:assert/strict'
import { after, afterEach, beforeEach, describe, test } from 'node:test'
import { queryDatabase } from '../../../test/support/change-database.ts'
import { eachStore } from '../../../test/support/databases.ts'
import { until } from '../../../test/support/until.ts'
import type { Reservation } from '../../link/planes/plane-calls.ts'
import { endpointTunnel, onlineSession, testReservation } from '../directory/testing/test-online.ts'
import type { TestPlane } from '../mirrors/testing/test-planes.ts'
import { openStore, type Store } from '../store/store.ts'
import { SILENT_MS } from './lost-nodes.ts'
import { RETURN_MS } from './node-lease.ts'
import { type Nodes, TestNode } from './testing/test-node.ts'

const NAME = 'a.example.com'

describe('the address of an agent whose node has lost its lease', () => {
  eachStore((databases) => {
    let url: string
    let store: Store
    let nodes: Nodes
    let now = 0
    let [here, there]: TestNode[] = []
    let plane: TestPlane
    let theirs: TestPlane
    beforeEach(async () => {
      await store?.close()
      url = await databases.url()
      store = await openStore(url)
      nodes = new Map()
      now = 0
      here = await start('nd_a')
      there = await start('nd_b')
      await here.cluster.renew()
      plane = await here.plane()
      theirs = await there.plane()
      assert.equal(await bind(theirs, 'tn_1', 'ts_1', 'usr_1'), true)
      await there.cluster.presence().sessions({ limit: 1 })
    })
    afterEach(async () => {
      for (const node of nodes.values()) await node.stop()
    })
    after(() => store.close())

    const start = async (id: string): Promise<TestNode> => {
      const node = new TestNode(nodes, store, id, () => now)
      await node.cluster.start()
      return node
    }
    const wanted = (tunnelId: string, sessionId: string, ownerId: string): Reservation => {
      const reservation = testReservation(tunnelId, sessionId, NAME)
      return { ...reservation, config: { ...reservation.config, ownerId } }
    }
    const bind = async (at: TestPlane, tunnelId: string, sessionId: string, ownerId: string): Promise<boolean> => {
      const { cluster } = (at === plane ? here : there) ?? assert.fail()
      at.link.tell('sessionStarted', onlineSession(sessionId))
      const reservation = wanted(tunnelId, sessionId, ownerId)
      const claim = () => at.link.ask('claim', reservation)
      // As a bind does.
      if (!(await claim()) && !((await cluster.isFreed(reservation)) && (await claim()))) return false
      const online = endpointTunnel(tunnelId, sessionId, NAME)
      await at.link.ask('tunnelStarted', {
        ...online,
        ...(online.endpoint && { endpoint: { ...online.endpoint, ...reservation } }),
      })
      return true
    }
    /** As when its process stands still: nobody renews its lease, and the other node knows that. */
    const lose = async (): Promise<void> => {
      await there?.cluster.renew()
      await queryDatabase(url, "update nodes set expires_at = 1 where id = 'nd_b'")
      await here?.cluster.renew()
    }
    const stranger = () => bind(plane, 'tn_2', 'ts_2', 'usr_2')
    const found = async (): Promise<string | undefined> =>
      (await here?.cluster.lookUps.addresses([`secure:${NAME}`]))?.[0]?.tunnel.tunnelId

    test('goes to no other owner while the node says that it is held, and visitors are sent there', async () => {
      await lose()
      assert.equal(await stranger(), false)
      assert.equal(await plane.link.ask('whyTaken', wanted('tn_2', 'ts_2', 'usr_2')), 'asks alone')
      assert.equal(await plane.link.ask('proveAlive', { place: `secure:${NAME}` }), false)
      assert.equal(await found(), 'tn_1')
      now += 2 * SILENT_MS
      assert.equal(await stranger(), false)
      assert.deepEqual([plane.nodes, here?.cluster.others, here?.cluster.metrics.nodes], [['nd_b'], [], 1])
      await there?.cluster.renew()
      await there?.cluster.presence().sessions({ limit: 1 })
      assert.deepEqual(theirs.stopped, [], 'it keeps what it had')
      assert.equal(await stranger(), false)
    })

    test('goes to the same owner at once, and the node gives it up when it is back', async () => {
      await lose()
      assert.equal(await bind(plane, 'tn_2', 'ts_2', 'usr_1'), true)
      await there?.cluster.renew()
      await until('its agent is told', () => theirs.stopped.includes('tn_1'))
      assert.equal((await there?.cluster.lookUps.addresses([`secure:${NAME}`]))?.[0]?.tunnel.tunnelId, 'tn_2')
    })

    test('goes to the same agent at once, whoever owns it by now', async () => {
      await lose()
      if (there) there.isCut = true
      assert.equal(await bind(plane, 'tn_1', 'ts_9', 'usr_2'), true)
    })

    test('goes to another owner when the node says that it is free', async () => {
      await lose()
      theirs.link.tell('tunnelEnded', { tunnelId: 'tn_1' })
      await until('it is over', () => there?.planes.directory.heldTunnel('tn_1') === undefined)
      // Its row stays, since the node cannot write without its lease.
      await queryDatabase(url, "update nodes set expires_at = 1 where id = 'nd_b'")
      assert.equal(await stranger(), true)
    })

    test('that is back is kept for the agent and its owner for a while when the agent has left meanwhile', async (t) => {
      const steady = performance.now.bind(performance)
      let laterMs = 0
      t.mock.method(performance, 'now', () => steady() + laterMs)
      await lose()
      await there?.cluster.renew()
      await there?.cluster.presence().sessions({ limit: 1 })
      const rows = async () => (await store.read(({ online }) => online.holders([`secure:${NAME}`])))[0]?.holders.length
      t.mock.timers.enable({ apis: ['setTimeout'] })
      const write = async (): Promise<void> => {
        t.mock.timers.tick(1000)
        t.mock.timers.reset()
        await there?.cluster.presence().sessions({ limit: 1 })
      }
      theirs.link.tell('tunnelEnded', { tunnelId: 'tn_1' })
      while (there?.planes.directory.heldTunnel('tn_1')) await new Promise((resolve) => setImmediate(resolve))
      await there?.cluster.presence().sessions({ limit: 1 })
      assert.equal(await rows(), 1)
      laterMs += RETURN_MS
      await there?.cluster.renew()
      t.mock.timers.tick(RETURN_MS)
      await write()
      assert.equal(await rows(), undefined)
      assert.equal(await stranger(), true)
    })

    test('that is back goes to nobody but the agent and its owner at first', async () => {
      await lose()
      await there?.cluster.renew()
      theirs.link.tell('tunnelEnded', { tunnelId: 'tn_1' })
      await until('it is over', () => there?.planes.directory.heldTunnel('tn_1') === undefined)
      await there?.cluster.presence().sessions({ limit: 1 })
      assert.deepEqual([await stranger(), await bind(theirs, 'tn_3', 'ts_3', 'usr_2')], [false, false])
      assert.equal(await bind(theirs, 'tn_4', 'ts_4', 'usr_1'), true)
      assert.equal(await bind(plane, 'tn_5', 'ts_4', 'usr_1'), true)
    })

    for (const [says, isFree] of [
      ['refused', true],
      ['unclear', false],
    ] as const) {
      test(`${isFree ? 'goes' : 'does not go'} to another owner when the answer of the node is ${says}`, async () => {
        if (there) there.places = says
        await lose()
        assert.equal(await stranger(), isFree)
      })
    }

    test('goes to another owner when the node has been silent for 60 s, not before', async () => {
      if (there) there.isCut = true
      await lose()
      assert.equal(await stranger(), false)
      now += SILENT_MS - 1
      assert.equal(await stranger(), false)
      now += 1
      assert.equal(await stranger(), true)
    })

    test("is nobody else's while its node is asked: the agent itself gets it", async () => {
      const asked = Promise.withResolvers<void>()
      const answer = Promise.withResolvers<void>()
      if (there) {
        there.whenAsked = async () => {
          asked.resolve()
          await answer.promise
        }
      }
      await lose()
      const waits = stranger()
      await asked.promise
      assert.equal(await bind(plane, 'tn_1', 'ts_1', 'usr_1'), true, 'the agent itself comes')
      answer.resolve()
      assert.equal(await waits, false)
    })
  })
})
