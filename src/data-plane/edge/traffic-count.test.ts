import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TrafficCount } from './traffic-count.ts'

test('edges are counted apart, and endpoints of agents both apart and together', () => {
  const counts = new TrafficCount({ addressOf: (id) => `${id}.test` })
  assert.deepEqual([...counts], [])
  counts.of('ep_1').connections++
  counts.of('ep_2').connections += 2
  counts.of('').refused++
  counts.of('edgtcp_1').connections++
  assert.deepEqual(
    [...counts].map(({ edge, connections, refused }) => [edge, connections, refused]),
    [
      ['edgtcp_1', 1, 0],
      ['endpoints', 3, 1],
    ],
  )
  assert.deepEqual(
    [...counts.endpoints()].map(({ edge, address, connections, refused }) => [edge, address, connections, refused]),
    [
      ['ep_1', 'ep_1.test', 1, 0],
      ['ep_2', 'ep_2.test', 2, 0],
      ['others', '', 0, 1],
    ],
  )
})

test('the number of endpoints with their own count is bounded, and one that goes makes room without a loss', () => {
  const served = new Set<string>()
  const counts = new TrafficCount({ isServed: (id) => served.has(id) })
  for (let i = 0; i < 2000; i++) {
    served.add(`ep_${i}`)
    const count = counts.of(`ep_${i}`)
    count.connections++
    count.requestMs += 5
    count.requests[2] = (count.requests[2] ?? 0) + 1
  }
  const rows = () => new Map([...counts.endpoints()].map((row) => [row.edge, row]))
  assert.equal(rows().size, 501)
  assert.equal(rows().get('others')?.connections, 1500)
  const sum = () => [...counts].map(({ connections, requestMs, requests }) => [connections, requestMs, requests[2]])
  assert.deepEqual(sum(), [[2000, 10_000, 2000]])

  served.delete('ep_0')
  counts.forget('ep_0')
  assert.deepEqual([rows().has('ep_0'), rows().get('others')?.connections], [false, 1501])
  assert.deepEqual(sum(), [[2000, 10_000, 2000]], 'the sum of all only grows')
  counts.of('ep_0').connections++
  assert.equal(rows().has('ep_0'), false, 'nothing late brings it back')
  counts.of('ep_1999').connections++
  assert.equal(rows().get('ep_1999')?.connections, 1, 'its place is taken by another')
})

test('an endpoint that comes back while a visitor is still connected keeps its count', () => {
  const served = new Set(['ep_1'])
  const counts = new TrafficCount({ isServed: (id) => served.has(id) })
  const count = counts.of('ep_1')
  count.connections++
  count.open++
  served.delete('ep_1')
  counts.forget('ep_1')
  served.add('ep_1')
  assert.equal(counts.of('ep_1'), count)
  counts.closed(count)
  assert.deepEqual(
    [...counts.endpoints()].map(({ edge, connections, open }) => [edge, connections, open]),
    [['others', 1, 0]],
  )
  assert.notEqual(counts.of('ep_1'), count, 'it starts again once that is over')
})

test('the number of edges with their own count is bounded', () => {
  const counts = new TrafficCount()
  for (let i = 0; i < 5000; i++) counts.of(`edgtcp_${i}`).connections++
  const all = [...counts]
  assert.equal(all.length, 1001)
  assert.equal(all.find(({ edge }) => edge === 'others')?.connections, 4000)
})

test('an edge that is gone makes room once its last visitor has left, and nothing late brings it back', () => {
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
