import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type PlaneMetrics, pastOf, sumOf, type TrafficRow } from './plane-metrics.ts'

const count = fc.nat({ max: 1000 })
const row: fc.Arbitrary<TrafficRow> = fc.record({
  edge: fc.constantFrom('e1', 'e2', 'e3'),
  address: fc.constant('a.example.com'),
  connections: count,
  open: count,
  bytesIn: count,
  bytesOut: count,
  requests: fc.array(count, { minLength: 5, maxLength: 5 }),
  requestMs: count,
  refused: count,
})
const rows = fc.uniqueArray(row, { selector: ({ edge }) => edge })
const refusals = fc.uniqueArray(fc.tuple(fc.constantFrom('max-a', 'max-b'), count), { selector: ([name]) => name })
const metrics: fc.Arbitrary<PlaneMetrics> = fc.record({
  edges: rows,
  endpoints: rows,
  latency: fc.record({
    bounds: fc.constant([1, 10]),
    steps: fc.array(count, { minLength: 3, maxLength: 3 }),
    sumMs: count,
  }),
  doors: fc.uniqueArray(fc.record({ door: fc.constantFrom('visitors', 'agents'), open: count, refusals }), {
    selector: ({ door }) => door,
  }),
  totals: fc.record({
    bodyRefusals: count,
    policyBudgetsSpent: count,
    turnedAway: count,
    failures: count,
    refusedConnections: count,
    relayed: count,
    toNodes: count,
    unreachedNodes: count,
    fromNodes: count,
    lookUps: count,
    failedLookUps: count,
  }),
  present: fc.record({
    sessions: count,
    tunnels: count,
    streams: count,
    unproven: count,
    standbys: count,
    bodyMemory: count,
    linksToNodes: count,
    linksFromNodes: count,
    streamsToNodes: count,
    streamsFromNodes: count,
  }),
  servedEdges: count,
  comingEdges: count,
  firstExpiry: fc.option(count, { nil: undefined }),
})

/** Every number by its path, in no particular order. */
function flat({ edges, endpoints, latency, doors, ...rest }: PlaneMetrics): Map<string, number> {
  const found = new Map<string, number>()
  const put = (path: string, value: unknown): void => {
    if (typeof value === 'number') found.set(path, value)
    else if (typeof value === 'object' && value !== null) {
      for (const [key, each] of Object.entries(value)) put(`${path} ${key}`, each)
    }
  }
  for (const each of edges) put(`edge ${each.edge}`, each)
  for (const each of endpoints) put(`endpoint ${each.edge}`, each)
  for (const { door, open, refusals: refused } of doors) {
    put(`door ${door}`, { open, ...Object.fromEntries(refused) })
  }
  put('latency', { steps: latency.steps, sumMs: latency.sumMs })
  put('rest', rest)
  return found
}

const sorted = (all: PlaneMetrics) => [...flat(all)].sort(([a], [b]) => (a < b ? -1 : 1))

test('the numbers of planes add up, number by number, in any order', () => {
  fc.assert(
    fc.property(fc.array(metrics, { minLength: 1, maxLength: 5 }), (all) => {
      const sum = flat(sumOf(all))
      for (const [path, value] of sum) {
        const parts = all.flatMap((each) => flat(each).get(path) ?? [])
        if (path.endsWith('Edges')) assert.equal(value, Math.max(...parts), path)
        else if (path.endsWith('firstExpiry')) assert.equal(value, Math.min(...parts), path)
        else {
          assert.equal(
            value,
            parts.reduce((a, b) => a + b, 0),
            path,
          )
        }
      }
      for (const path of all.flatMap((each) => [...flat(each).keys()])) assert.ok(sum.has(path), path)
      assert.deepEqual(sorted(sumOf(all.toReversed())), sorted(sumOf(all)))
      assert.deepEqual(sorted(sumOf([sumOf(all.slice(0, 1)), sumOf(all.slice(1))])), sorted(sumOf(all)))
    }),
  )
})

test('when a plane goes, no counter goes back and its gauges are gone', () => {
  fc.assert(
    fc.property(metrics, metrics, (gone, left) => {
      const before = flat(sumOf([gone, left]))
      const after = flat(sumOf([pastOf(gone), left]))
      const own = flat(left)
      for (const [path, value] of before) {
        const isOfNow = /(^rest (present|servedEdges|comingEdges|firstExpiry)| open$)/.test(path)
        assert.equal(
          after.get(path),
          isOfNow ? (own.get(path) ?? (path.endsWith('open') ? 0 : undefined)) : value,
          path,
        )
      }
    }),
  )
})

test('without planes all numbers are zero, and a plane of another version may lack a number', () => {
  assert.equal(sumOf([]).totals.failures, 0)
  assert.equal(sumOf([]).firstExpiry, undefined)
  const one = sumOf([])
  const { failures, ...totals } = { ...one.totals, turnedAway: 2 }
  const older = { ...one, totals: totals as PlaneMetrics['totals'] }
  const newer = { ...one, totals: { ...one.totals, failures: failures + 7 } }
  for (const all of [
    [older, newer],
    [newer, older],
  ]) {
    assert.deepEqual([sumOf(all).totals.failures, sumOf(all).totals.turnedAway], [7, 2])
  }
})

test('a bounded number of rows of planes that are gone stays, the newest', () => {
  const row = (n: number): TrafficRow => ({
    ...{ edge: `edghts_${n}`, address: '', connections: 1, open: 1, bytesIn: 0, bytesOut: 0 },
    ...{ requests: [], requestMs: 0, refused: 0 },
  })
  const metrics = { ...sumOf([]), edges: Array.from({ length: 5000 }, (_, n) => row(n)) }
  const { edges } = pastOf(metrics)
  assert.deepEqual([edges.length, edges[0]?.edge, edges.at(-1)], [2000, 'edghts_3000', { ...row(4999), open: 0 }])
})
