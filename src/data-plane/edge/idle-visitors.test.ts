import assert from 'node:assert/strict'
import { test } from 'node:test'
import { IdleVisitors } from './idle-visitors.ts'

interface Visit {
  ip: string
  idle: number | undefined
  isClosed: boolean
}

/** Connections from addresses, each with how long it has been idle; `looks` counts how often all were looked at. */
function crowd(...rows: readonly (readonly [ip: string, idle: number | undefined])[]) {
  const visits: Visit[] = rows.map(([ip, idle]) => ({ ip, idle, isClosed: false }))
  const count = { looks: 0 }
  const idle = new IdleVisitors()
  idle.watch({
    visits() {
      count.looks++
      return visits
        .filter(({ isClosed }) => !isClosed)
        .map((visit) => ({
          ip: visit.ip,
          idleMs: () => (visit.isClosed ? undefined : visit.idle),
          close: () => {
            visit.isClosed = true
          },
        }))
    },
  })
  const closed = () => visits.map(({ isClosed }, i) => (isClosed ? i : -1)).filter((i) => i >= 0)
  return { idle, visits, count, closed }
}

const SMALL = '192.0.2.1'
const LARGE = '198.51.100.1'

test('of the source that has most, the longest idle connection gives way', () => {
  const { idle, closed } = crowd([SMALL, 9000], [LARGE, 10], [LARGE, 30], [LARGE, undefined], [LARGE, 20])
  const order: number[] = []
  for (let i = 0; i < 3; i++) {
    assert.equal(idle.giveWay('203.0.113.9'), true)
    order.push(...closed().filter((each) => !order.includes(each)))
  }
  assert.deepEqual(order, [2, 4, 1], 'one in use counts too')
  assert.equal(idle.giveWay('203.0.113.9'), true)
  assert.deepEqual(closed(), [0, 1, 2, 4])
  assert.equal(idle.giveWay('203.0.113.9'), false, 'nobody is idle any more')
})

test('addresses of one IPv6 network are one source', () => {
  const { idle, closed } = crowd([SMALL, 9000], ['2001:db8::1', 10], ['2001:db8::2', 20])
  assert.equal(idle.giveWay('203.0.113.9'), true)
  assert.deepEqual(closed(), [2])
})

test('a source with many busy connections does not push out the idle ones of others, only its own', () => {
  const { idle, closed } = crowd([SMALL, 9000], [LARGE, undefined], [LARGE, undefined], [LARGE, 5])
  assert.equal(idle.giveWay(LARGE), true)
  assert.equal(idle.giveWay(LARGE), false)
  assert.deepEqual(closed(), [3])
  assert.equal(idle.giveWay(SMALL), true, 'it gives up its own for its next')
  assert.deepEqual(closed(), [0, 3])
})

test('a connection that was used since the look does not give way', () => {
  const { idle, visits, closed } = crowd(...Array.from({ length: 16 }, (_, i) => [LARGE, 100 - i] as const))
  assert.equal(idle.giveWay(SMALL), true)
  assert.deepEqual(closed(), [0])
  const [, next] = visits
  if (next) next.idle = undefined
  assert.equal(idle.giveWay(SMALL), true)
  assert.deepEqual(closed(), [0, 2])
})

test('one look at all connections serves an eighth as many newcomers', () => {
  const { idle, count } = crowd(...Array.from({ length: 800 }, (_, i) => [`10.0.${i % 8}.1`, i] as const))
  for (let i = 0; i < 200; i++) assert.equal(idle.giveWay(SMALL), true)
  assert.ok(count.looks <= 3, `${count.looks} looks`)
})
