/** A session whose agent comes back at two nodes at the same time. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eachStore } from '../../../test/support/databases.ts'
import { until } from '../../../test/support/until.ts'
import { createLog } from '../../lib/log/create-log.ts'
import { onlineSession } from '../directory/testing/test-online.ts'
import { Follower } from '../store/feed-follower.ts'
import { openStore } from '../store/store.ts'
import { type Nodes, TestNode } from './testing/test-node.ts'

const log = createLog({ level: 'silent', format: 'json', destination: { write() {} } })

eachStore((databases) => {
  test('stays at the later one, also when it has no address', async (t) => {
    const store = await openStore(await databases.url())
    const nodes: Nodes = new Map()
    const start = async (id: string) => {
      const node = new TestNode(nodes, store, id)
      await node.cluster.start()
      const follower = new Follower({ store, followed: node.cluster.moved(), log })
      await follower.start()
      t.after(async () => {
        await follower.stop()
        await node.stop()
      })
      return { node, plane: await node.plane() }
    }
    const [first, second] = [await start('nd_a'), await start('nd_b')]
    t.after(() => store.close())
    await first.node.cluster.renew()
    for (const { plane } of [first, second]) {
      assert.deepEqual(await plane.link.ask('returning', { sessionId: 'ts_1' }), [])
    }
    for (const { node, plane } of [first, second]) {
      await plane.link.ask('sessionStarted', onlineSession('ts_1'))
      await node.cluster.presence().sessions({ limit: 1 })
    }
    await until('it is ended', () => first.plane.ended.includes('ts_1'))
    assert.deepEqual([second.plane.ended, first.node.planes.directory.sessionCount], [[], 0])
  })
})
