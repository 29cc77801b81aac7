import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TrafficCount } from './traffic-count.ts'

test('endpoints of agents are counted together, edges apart', () => {
  const counts = new TrafficCount()
  counts.of('ep_1').connections++
  counts.of('ep_2').connections++
  counts.of('edgtcp_1').connections++
  assert.deepEqual(
    [...counts].map(({ edge, connections }) => [edge, connections]),
    [
      ['endpoints', 2],
      ['edgtcp_1', 1],
    ],
  )
})

test('the number of edges that are told apart is bounded', () => {
  const counts = new TrafficCount()
  for (let i = 0; i < 5000; i++) counts.of(`edgtcp_${i}`).connections++
  const all = [...counts]
  assert.equal(all.length, 1001)
  assert.equal(all.find(({ edge }) => edge === 'others')?.connections, 4000)
})

test('an edge that is gone makes room, unless somebody is still connected', () => {
  const counts = new TrafficCount()
  counts.of('edgtcp_1').open++
  counts.of('edgtcp_2')
  counts.forget('edgtcp_1')
  counts.forget('edgtcp_2')
  assert.deepEqual(
    [...counts].map(({ edge }) => edge),
    ['edgtcp_1'],
  )
})
