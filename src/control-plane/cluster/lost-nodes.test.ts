import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { AddressHolder, ServedAnswer } from '../../link/planes/ask-node.ts'
import type { OtherNode } from '../../link/planes/plane-calls.ts'
import { LostNodes, SILENT_MS } from './lost-nodes.ts'

const nodeAt = (nodeId: string): OtherNode => ({
  ...{ nodeId, name: nodeId, address: { host: '192.0.2.1', port: 7444 }, agentAddresses: [], isLeaving: false },
})
const holder = (n: number, nodeId = 'nd_b') => ({
  nodeId,
  place: `secure:${n}`,
  tunnelId: `tn_${n}`,
  sessionId: `ts_${n}`,
})

/** Lost nodes, what they say, and a clock. */
function lostNodes(...ids: string[]) {
  const world = {
    now: 0,
    says: 'silent' as ServedAnswer | ((holders: readonly AddressHolder[]) => ServedAnswer),
    asked: 0,
  }
  const lost = new LostNodes({
    now: () => world.now,
    ask: async (_, holders) => {
      world.asked++
      return typeof world.says === 'function' ? world.says(holders) : world.says
    },
  })
  const look = async (): Promise<void> => {
    lost.use(ids.map(nodeAt))
    // Its questions are answered by then.
    await lost.areFree(ids.map((id) => holder(0, id)))
  }
  return { world, lost, look }
}

describe('a lost node', () => {
  test('that answers has the places that it names, and no others', async () => {
    const { world, lost, look } = lostNodes('nd_b')
    world.says = (holders) => holders.map(({ tunnelId }) => tunnelId === 'tn_1')
    await look()
    const all = await Promise.all([
      lost.areFree([holder(1)]),
      lost.areFree([holder(2)]),
      lost.areFree([holder(2), holder(1)]),
    ])
    assert.deepEqual(all, [false, true, false])
    assert.equal(lost.isGone('nd_b'), false)
  })

  const cases: readonly [says: ServedAnswer, isFree: boolean][] = [
    ['refused', true],
    ['silent', false],
    ['unclear', false],
  ]
  for (const [says, isFree] of cases) {
    test(`whose answer is ${String(says)} has ${isFree ? 'nothing' : 'all'} of its places`, async () => {
      const { world, lost, look } = lostNodes('nd_b')
      world.says = says
      await look()
      assert.deepEqual([await lost.areFree([holder(1)]), lost.isGone('nd_b')], [isFree, isFree])
    })
  }

  test('is gone when it has been silent for 60 s since it was lost, or since it answered last', async () => {
    const { world, lost, look } = lostNodes('nd_b')
    await look()
    world.now += SILENT_MS - 1
    assert.deepEqual([await lost.areFree([holder(1)]), lost.isGone('nd_b')], [false, false])
    world.says = 'unclear'
    await look()
    world.says = 'silent'
    world.now += SILENT_MS - 1
    await look()
    assert.deepEqual([await lost.areFree([holder(1)]), lost.isGone('nd_b')], [false, false])
    world.now += 1
    assert.deepEqual([await lost.areFree([holder(1)]), lost.isGone('nd_b')], [true, true])
  })

  test('has all that it had when it is not lost any more', async () => {
    const { world, lost, look } = lostNodes('nd_b')
    world.says = 'refused'
    await look()
    lost.use([])
    const { asked } = world
    assert.deepEqual([await lost.areFree([holder(1)]), lost.isGone('nd_b'), world.asked], [false, false, asked])
  })

  test('is asked once for many places', async () => {
    const { world, lost, look } = lostNodes('nd_b')
    await look()
    const before = world.asked
    await Promise.all(Array.from({ length: 400 }, (_, i) => lost.areFree([holder(i)])))
    assert.ok(world.asked - before <= 2, `${world.asked - before} questions`)
  })
})
