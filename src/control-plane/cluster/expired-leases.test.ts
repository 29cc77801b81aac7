/** What a node makes of leases that have expired: those of dead nodes, and all of them after the database was away. */
import assert from 'node:assert/strict'
import { after, afterEach, beforeEach, describe, type TestContext, test } from 'node:test'
import { eachStore } from '../../../test/support/databases.ts'
import { until } from '../../../test/support/until.ts'
import { endpointTunnel, onlineSession, testReservation } from '../directory/testing/test-online.ts'
import type { TestPlane } from '../mirrors/testing/test-planes.ts'
import { openStore, type Store } from '../store/store.ts'
import { type Nodes, TestNode } from './testing/test-node.ts'

const NAME = 'a.example.com'

/** Less than the time without the database after which a node is unsure of others, and more, in milliseconds. */
const SHORT_MS = 3000
const LONG_MS = 6000

/** Lets time pass for the steady clock of this process. */
function clockOf(t: TestContext): (ms: number) => void {
  const now = performance.now.bind(performance)
  let laterMs = 0
  t.mock.method(performance, 'now', () => now() + laterMs)
  return (ms) => {
    laterMs += ms
  }
}

describe('an expired lease', () => {
  eachStore((databases) => {
    let store: Store
    let nodes: Nodes
    let here: TestNode
    let there: TestNode
    let plane: TestPlane
    beforeEach(async () => {
      await store?.close()
      store = await openStore(await databases.url())
      nodes = new Map()
      here = new TestNode(nodes, store, 'nd_a')
      await here.cluster.start()
      there = new TestNode(nodes, store, 'nd_b')
      await there.cluster.start()
      await here.cluster.renew()
      plane = await here.plane()
      const other = await there.plane()
      other.link.tell('sessionStarted', onlineSession('ts_1'))
      assert.ok(await other.link.ask('claim', testReservation('tn_1', 'ts_1', NAME)))
      await other.link.ask('tunnelStarted', endpointTunnel('tn_1', 'ts_1', NAME))
      await there.cluster.presence().sessions({ limit: 1 })
    })
    afterEach(async () => {
      for (const node of nodes.values()) await node.stop()
    })
    after(() => store.close())

    const found = async (): Promise<string | undefined> =>
      (await here.cluster.lookUps.addresses([`secure:${NAME}`]))[0]?.tunnel.nodeId
    const dead = async () => (await store.read(({ online }) => online.deadNodes())).map(({ id }) => id)
    const expire = () => store.write((writer) => writer.online.leave('nd_b'))
    const die = async (): Promise<void> => {
      nodes.delete('nd_b')
      await there.vanish()
      await expire()
    }

    test('makes all nodes unsure after the database was away, until they have had time to renew theirs', async (t) => {
      const pass = clockOf(t)
      await expire()
      pass(LONG_MS)
      assert.equal(await found(), undefined)
      // The data plane knows by the time of the answer.
      assert.deepEqual([plane.nodes, plane.unsure, here.cluster.metrics.nodes], [['nd_b'], ['nd_b'], 1])
      assert.deepEqual(await dead(), ['nd_b'])
      await there.cluster.renew()
      await here.cluster.renew()
      // An answer from before that may come still.
      assert.deepEqual([plane.unsure, here.cluster.metrics.nodes], [['nd_b'], 2])
      assert.equal(await found(), 'nd_b')
      for (let i = 0; i < 2; i++) {
        pass(SHORT_MS)
        for (const node of [there, here]) await node.cluster.renew()
      }
      assert.deepEqual([plane.nodes, plane.unsure], [['nd_b'], []])
    })

    test('is that of a dead node if it is not renewed by then', async (t) => {
      const pass = clockOf(t)
      await die()
      pass(LONG_MS)
      await here.cluster.renew()
      assert.deepEqual(plane.unsure, ['nd_b'])
      for (let i = 0; i < 2; i++) {
        pass(SHORT_MS)
        await here.cluster.renew()
      }
      await until('its data plane knows', () => plane.nodes.length === 0)
      await until('its rows are swept', async () => (await dead()).length === 0)
    })

    test('has the rows of its node swept by another, which has been there for a while', async (t) => {
      const pass = clockOf(t)
      await die()
      const rows = () => store.read(({ online }) => online.keysAt('nd_b', 'sessions', { after: '', limit: 9 }))
      await here.cluster.renew()
      assert.deepEqual(await rows(), ['ts_1'])
      for (let i = 0; i < 2; i++) {
        pass(SHORT_MS)
        await here.cluster.renew()
      }
      await until('they are gone', async () => (await dead()).length === 0)
      assert.deepEqual(await rows(), [])
    })
  })
})
