import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { requests } from '../result.ts'
import { type Bar, comparedOf, type EdgeLane } from './compare.ts'
import { comparedTable, verdict } from './table.ts'

/** A lane with samples of these requests a second, and these CPU seconds for a hundred thousand requests. */
function sampled(name: string, bar: Bar | null, figures: readonly (readonly [speed: number, cpu: number])[]) {
  const lane: EdgeLane = {
    name,
    link: 'L7 HTTPS',
    isOurs: true,
    bar,
    pids: () => [1],
    run: async () => ({ amount: 1, seconds: 1 }),
  }
  const samples = figures.map(([perSecond, cpu]) => ({ perSecond, cpuPerUnit: cpu / 1e5 }))
  return { lane, samples, failure: figures.length === 0 ? 'it broke' : null }
}

const row = { row: 'edges', unit: requests }
const rounded = (value: number | null | undefined): string | undefined => value?.toFixed(2)

describe('lanes that were measured in turns', () => {
  test('are compared with the first in speed and in CPU time, round by round', () => {
    const [few, many] = comparedOf(row, [
      sampled('few', null, [
        [100, 4],
        [300, 2],
        [200, 3],
      ]),
      sampled('many', { cost: 1.1 }, [
        [150, 3],
        [100, 9],
        [900, 3.3],
      ]),
    ])
    assert.deepEqual([few?.speed, many?.speed], [200, 150])
    assert.deepEqual([rounded(few?.cpu), rounded(many?.cpu)], ['3.00', '3.30'])
    assert.deepEqual([rounded(many?.ratio), rounded(many?.costRatio)], ['1.50', '1.10'])
    assert.equal(many?.against, 'few')
  })

  test('have no ratio when the first of them failed', () => {
    const [only, ...others] = comparedOf(row, [sampled('few', null, []), sampled('many', { cost: 1.1 }, [[150, 3]])])
    assert.deepEqual(others, [])
    assert.deepEqual({ ratio: only?.ratio, costRatio: only?.costRatio }, { ratio: null, costRatio: null })
    assert.equal(only && verdict(only), '–')
  })
})

const verdicts: readonly [bar: Bar, speed: number, cpu: number, verdict: string][] = [
  [{ cost: 1.1 }, 50, 2.2, 'CPU at most 1.1: met'],
  [{ cost: 1.1 }, 150, 2.3, 'CPU at most 1.1: MISSED'],
  [{ speed: 0.5 }, 50, 9, 'at least 0.5: met'],
  [{ speed: 0.5 }, 49, 1, 'at least 0.5: MISSED'],
]
for (const [bar, speed, cpu, expected] of verdicts) {
  test(`${speed} beside 100 requests/s for ${cpu} beside 2 CPU seconds: ${expected}`, () => {
    const results = comparedOf(row, [sampled('a', null, [[100, 2]]), sampled('b', bar, [[speed, cpu]])])
    assert.deepEqual(results.map(verdict), ['–', expected])
    assert.ok(comparedTable('title', results).includes(`| ${expected} |`))
  })
}
