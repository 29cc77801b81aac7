import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { eachStore } from '../../../test/support/databases.ts'
import { createLog } from '../../lib/log/create-log.ts'
import { type PlaneMetrics, sumOf } from '../../model/plane-metrics.ts'
import type { BindRules } from '../directory/grant-binds.ts'
import { AttachedPlanes } from '../mirrors/attached-planes.ts'
import type { SharedCalls } from '../mirrors/shared-calls.ts'
import { TestPlane, testNode } from '../mirrors/testing/test-planes.ts'
import { sealedBy, testSealer } from '../records/testing/test-rows.ts'
import { openStore } from '../store/store.ts'
import { TrafficHistory } from './traffic-counts.ts'

const log = createLog({ level: 'silent' })

/** The numbers of a plane that has answered as many requests since it started. */
function numbersOf(requests: number): PlaneMetrics {
  const row = { address: '', connections: requests, open: 0, bytesIn: 0, bytesOut: 0, requestMs: 0, refused: 0 }
  return {
    ...sumOf([]),
    edges: [{ ...row, edge: 'edghts_1', requests: [0, 0, requests, 0, 0, 0] }],
    latency: { bounds: [10], steps: [requests, 0], sumMs: 0 },
  }
}

describe('the traffic history of a control plane that has just started', () => {
  eachStore((databases) => {
    test('has no spike when planes attach that served before, but counts what they serve from then on', async (t) => {
      const store = await sealedBy(await openStore(await databases.url()))
      t.after(() => store.close())
      const planes = new AttachedPlanes({
        ...{ store, sealer: testSealer, files: undefined, log, node: testNode, nodes: undefined },
        calls: {} as SharedCalls,
        bindRules: {} as BindRules,
        checkCredentials: async () => {},
      })
      t.after(() => planes.close())
      const clock = { ms: 0 }
      const read = () => planes.metrics()
      const history = new TrafficHistory({ read, now: () => clock.ms, steady: () => clock.ms, log })
      planes.whenJoined((metrics) => history.joined(metrics))
      const look = async (): Promise<number[]> => {
        clock.ms += 5000
        await history.look()
        return history.points('minutes').map(({ requests }) => requests)
      }
      assert.deepEqual(await look(), [])

      const served = { w1: 1000, w2: 70 }
      const attach = async (id: keyof typeof served): Promise<TestPlane> => {
        const plane = await new TestPlane(planes, id, { numbers: () => numbersOf(served[id]) }).attach()
        await plane.until(() => plane.heard.includes('numbers'))
        return plane
      }
      const first = await attach('w1')
      served.w1 += 3
      assert.deepEqual(await look(), [3])
      await attach('w2')
      served.w2 += 2
      assert.deepEqual(await look(), [3, 2])
      assert.deepEqual(
        history.points('minutes').map(({ steps }) => steps),
        [
          [3, 0],
          [2, 0],
        ],
      )
      // A plane whose link was lost counts on.
      first.link.close()
      await first.link.closed
      served.w1 += 4
      await attach('w1')
      assert.deepEqual(await look(), [3, 2, 4])
      assert.equal((await planes.metrics()).edges[0]?.connections, 1007 + 72)
    })
  })
})
