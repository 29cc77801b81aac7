/** An agent gives up an address and asks for it again at the same node, whatever the database does meanwhile. */
import assert from 'node:assert/strict'
import { after, afterEach, beforeEach, describe, type TestContext, test } from 'node:test'
import { eachStore } from '../../../test/support/databases.ts'
import { until } from '../../../test/support/until.ts'
import { endpointTunnel, onlineSession, testReservation } from '../directory/testing/test-online.ts'
import type { TestPlane } from '../mirrors/testing/test-planes.ts'
import { openStore, type Store } from '../store/store.ts'
import type { Writer } from '../store/writer.ts'
import { type Nodes, TestNode } from './testing/test-node.ts'

const NAME = 'a.example.com'
const PLACE = `secure:${NAME}`

describe('an address that its agent asks for again', () => {
  eachStore((databases) => {
    let store: Store
    let nodes: Nodes
    let [here, there]: TestNode[] = []
    let plane: TestPlane
    beforeEach(async () => {
      await store?.close()
      store = await openStore(await databases.url())
      nodes = new Map()
      here = await start('nd_a')
      there = await start('nd_b')
      await here.cluster.renew()
      plane = await here.plane()
    })
    afterEach(async () => {
      for (const node of nodes.values()) await node.stop()
    })
    after(() => store.close())

    const start = async (id: string): Promise<TestNode> => {
      const node = new TestNode(nodes, store, id)
      await node.cluster.start()
      return node
    }
    const bind = async (at: TestPlane, tunnelId: string, sessionId: string): Promise<boolean> => {
      at.link.tell('sessionStarted', onlineSession(sessionId))
      const isOurs = await at.link.ask('claim', testReservation(tunnelId, sessionId, NAME))
      if (isOurs) await at.link.ask('tunnelStarted', endpointTunnel(tunnelId, sessionId, NAME))
      return isOurs
    }
    /** The tunnel that visitors at the other node are sent to. */
    const found = async (): Promise<string | undefined> => {
      const [place] = (await there?.cluster.lookUps.addresses([PLACE])) ?? []
      return place?.tunnel.tunnelId
    }
    const holders = () => here?.planes.directory.heldAddresses(PLACE) ?? []

    /** Holds back the next write before its commit; with an error it is never committed. */
    const holdWrite = (t: TestContext) => {
      const begun = Promise.withResolvers<void>()
      const end = Promise.withResolvers<void>()
      const write = store.write.bind(store)
      const mocked = t.mock.method(store, 'write', <T>(work: (writer: Writer) => Promise<T>) => {
        return write(async (writer) => {
          const result = await work(writer)
          begun.resolve()
          await end.promise
          return result
        })
      })
      return {
        begun: begun.promise,
        end(error?: Error): void {
          mocked.mock.restore()
          if (error) end.reject(error)
          else end.resolve()
        },
      }
    }

    test('is found by other nodes as soon as it is granted', async () => {
      assert.equal(await bind(plane, 'tn_1', 'ts_1'), true)
      plane.link.tell('tunnelEnded', { tunnelId: 'tn_1' })
      assert.equal(await bind(plane, 'tn_2', 'ts_1'), true)
      assert.equal(await found(), 'tn_2')
    })

    test('is found by other nodes even while its release is being written', async (t) => {
      assert.equal(await bind(plane, 'tn_1', 'ts_1'), true)
      await here?.cluster.presence().sessions({ limit: 1 })
      const held = holdWrite(t)
      plane.link.tell('tunnelEnded', { tunnelId: 'tn_1' })
      await held.begun
      const again = bind(plane, 'tn_2', 'ts_1')
      await until('it is claimed', () => holders().length === 1)
      held.end()
      assert.equal(await again, true)
      assert.equal(await found(), 'tn_2')
    })

    test('is granted when its release could not be written', async (t) => {
      assert.equal(await bind(plane, 'tn_1', 'ts_1'), true)
      await here?.cluster.presence().sessions({ limit: 1 })
      const held = holdWrite(t)
      plane.link.tell('tunnelEnded', { tunnelId: 'tn_1' })
      await held.begun
      const again = bind(plane, 'tn_2', 'ts_1')
      await until('it is claimed', () => holders().length === 1)
      held.end(new Error('the database went away'))
      assert.equal(await again, true)
      await until('it is written', async () => (await found()) === 'tn_2')
    })

    test('is decided by the database when it was given up before it was granted', async (t) => {
      const other = await there?.plane()
      assert.ok(other && (await bind(other, 'tn_1', 'ts_1')))
      const held = holdWrite(t)
      plane.link.tell('sessionStarted', onlineSession('ts_2'))
      await held.begun
      const first = plane.link.ask('claim', testReservation('tn_2', 'ts_2', NAME))
      await until('it is claimed', () => holders().length === 1)
      plane.link.tell('unclaim', testReservation('tn_2', 'ts_2', NAME))
      const second = plane.link.ask('claim', testReservation('tn_3', 'ts_2', NAME))
      await until('it is claimed again', () => holders()[0]?.tunnelId === 'tn_3')
      held.end()
      assert.deepEqual([await first, await second], [false, false])
    })
  })
})
