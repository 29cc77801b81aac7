import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLog } from '../../lib/log/create-log.ts'
import { type PlaneMetrics, sumOf } from '../../model/plane-metrics.ts'
import { periods, showTraffic, TrafficHistory, type TrafficPoint, together } from './traffic-counts.ts'

const bounds = [10, 100]
const row = { address: '', connections: 0, open: 0, bytesIn: 0, bytesOut: 0, requestMs: 0, refused: 0 }
const silent = createLog({ level: 'silent' })

/** Edges by name, with the number of requests of each so far. */
function metricsOf(edges: Readonly<Record<string, number>>, more: Partial<PlaneMetrics> = {}): PlaneMetrics {
  const rows = Object.entries(edges).map(([edge, count]) => ({
    ...row,
    edge,
    connections: 2 * count,
    open: 1,
    requests: [0, 0, count - 1, 0, 0, 1],
  }))
  return { ...sumOf([]), edges: rows, latency: { bounds, steps: [0, 0, 0], sumMs: 0 }, ...more }
}

function start() {
  const clock = { now: 1_700_000_000_000, steady: 0 }
  let metrics = metricsOf({})
  const options = { read: async () => metrics, now: () => clock.now, steady: () => clock.steady, log: silent }
  const history = new TrafficHistory(options)
  const look = async (after: number, next: PlaneMetrics): Promise<void> => {
    clock.now += after
    clock.steady += after
    metrics = next
    await history.look()
  }
  return { clock, history, look }
}

const requests = (points: readonly TrafficPoint[]): number[] => points.map((point) => point.requests)

test('a point has the traffic of its span, of all edges', async () => {
  const { history, look } = start()
  await look(0, metricsOf({ a: 100 }))
  assert.deepEqual(history.points('minutes'), [])
  const present = { ...sumOf([]).present, sessions: 3, tunnels: 4 }
  await look(5000, metricsOf({ a: 130, b: 20 }, { present }))
  await look(5000, metricsOf({ a: 130, b: 25 }, { present }))
  const [first, second] = history.points('minutes')
  assert.ok(first && second)
  assert.deepEqual([first.requests, first.connections, first.errors, first.open], [50, 100, 1, 2])
  assert.deepEqual([first.seconds, first.sessions, first.tunnels], [5, 3, 4])
  assert.deepEqual([second.requests, second.at - first.at], [5, 5000])
  assert.deepEqual(requests(history.points('day')), [55])
})

test('deleted edges do not reduce the traffic', async () => {
  const { history, look } = start()
  await look(0, metricsOf({ a: 100, b: 7 }))
  await look(5000, metricsOf({ b: 9 }))
  await look(5000, metricsOf({ a: 4, b: 9 }))
  await look(5000, metricsOf({ a: 2, b: 9 }))
  assert.deepEqual(requests(history.points('minutes')), [2, 4, 0])
})

test('a bounded number of points is kept, and none that is too old', async () => {
  const { history, look } = start()
  await look(0, metricsOf({ a: 0 }))
  for (let i = 1; i <= periods.minutes.count + 20; i++) await look(5000, metricsOf({ a: i }))
  assert.equal(history.points('minutes').length, periods.minutes.count)
  assert.equal(
    requests(history.points('day')).reduce((a, b) => a + b, 0),
    periods.minutes.count + 20,
  )
  await look(3_600_000, metricsOf({ a: 300 }))
  assert.deepEqual(requests(history.points('minutes')), [300 - periods.minutes.count - 20])
})

test('after a clock jump, times stay in order and spans keep their length', async () => {
  const { clock, history, look } = start()
  await look(0, metricsOf({ a: 0 }))
  for (let i = 1; i <= 5; i++) await look(5000, metricsOf({ a: i }))
  clock.now -= 20_000
  await look(5000, metricsOf({ a: 9 }))
  const points = history.points('minutes')
  const times = points.map(({ at }) => at)
  assert.deepEqual(
    times,
    times.toSorted((a, b) => a - b),
  )
  assert.equal(points.at(-1)?.seconds, 10)
  clock.now += 60_000
  await look(5000, metricsOf({ a: 10 }))
  assert.equal(history.points('minutes').at(-1)?.seconds, 5)
})

test('points of nodes add up by time, with their latency steps', async () => {
  const at = (time: number, count: number, steps: number[]): TrafficPoint => ({
    ...{ at: time, seconds: 5, requests: count, errors: 0, refused: 0, connections: 0, bytesIn: 0, bytesOut: 0 },
    ...{ bounds, steps, open: 1, sessions: 2, tunnels: 3 },
  })
  const [first, second] = together([[at(5, 1, [1, 0, 0])], [at(0, 2, [2, 0, 0]), at(5, 3, [0, 3, 0])]])
  assert.deepEqual([first?.at, first?.requests], [0, 2])
  assert.deepEqual([second?.requests, second?.steps, second?.seconds], [4, [1, 3, 0], 5])
  assert.deepEqual([second?.open, second?.sessions, second?.tunnels], [2, 4, 6])

  const of = { one: [at(0, 4, [1, 3, 0])], two: [at(5000, 0, [0, 0, 0])] }
  const shown = showTraffic('minutes', new Map(Object.entries(of)), [])
  assert.deepEqual([shown.interval, shown.nodes, shown.missing], [5, ['one', 'two'], []])
  const points = shown.points as Record<string, unknown>[]
  assert.deepEqual(
    points.map(({ at: time, p50_ms, p99_ms }) => [time, p50_ms, p99_ms]),
    [
      ['1970-01-01T00:00:00Z', 40, 98.8],
      ['1970-01-01T00:00:05Z', null, null],
    ],
  )
})
