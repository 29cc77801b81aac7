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

test('an edge that is gone makes room, once nobody is connected any more, and nothing late brings it back', () => {
  const served = new Set(['edgtcp_1', 'edgtcp_2'])
  const counts = new TrafficCount({ isServed: (id) => served.has(id) })
  const rows = () => [...counts].map(({ edge }) => edge)
  const first = counts.of('edgtcp_1')
  first.open += 2
  counts.of('edgtcp_2')
  for (const id of served) {
    served.delete(id)
    counts.forget(id)
  }
  assert.deepEqual(rows(), ['edgtcp_1'])
  counts.closed(first)
  assert.equal(counts.of('edgtcp_1'), first, 'the end of a request belongs to the count that is there')
  counts.closed(first)
  assert.deepEqual(rows(), [])
  counts.of('edgtcp_1').requests[2] = 1
  assert.deepEqual(rows(), ['others'])
})
