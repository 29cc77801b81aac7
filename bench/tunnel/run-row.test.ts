import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { chart } from '../chart.ts'
import type { Result } from '../result.ts'
import { openssh } from './contenders/openssh.ts'
import { posternTcp } from './contenders/postern.ts'
import { type Row, rows } from './rows.ts'
import { resultsOf } from './run-row.ts'
import { resultTable } from './table.ts'

const row = (name: string): Row => {
  const found = rows.find((each) => each.name === name)
  assert.ok(found)
  return found
}

function sampled(of: Row, contender: Row['contenders'][number], speeds: readonly number[], variant = 0) {
  const chosen = of.variants[variant]
  assert.ok(chosen)
  const lane = {
    name: [contender.name, chosen.name].filter(Boolean).join(', '),
    contender,
    variant: chosen,
    pids: () => [1],
    run: async () => ({ amount: 1, seconds: 1 }),
  }
  const samples = speeds.map((perSecond) => ({ perSecond, cpuPerUnit: 2e-9 }))
  return { lane, samples, failure: speeds.length === 0 ? 'it broke' : null }
}

const short = ({ name, speed, ratio, bar }: Result) => ({ name, speed, ratio, bar })

describe('results', () => {
  test('are medians and their ratios to OpenSSH, with a bar for Postern', () => {
    const up = row('up')
    const results = resultsOf(up, [
      sampled(up, openssh, [100e6, 400e6, 200e6]),
      sampled(up, posternTcp, [190e6, 1e6, 900e6]),
    ])
    assert.deepEqual(results.map(short), [
      { name: 'OpenSSH -R', speed: 200, ratio: 1, bar: null },
      { name: 'Postern tcp', speed: 190, ratio: 0.95, bar: 1 },
    ])
    assert.equal(results[1]?.cpu, 2)
    assert.match(
      resultTable('up', results),
      /Postern tcp \| L4 TLS \| 190 \| 0\.95 \| OpenSSH -R \| 2\.00 \| at least 1\.0: MISSED/,
    )
  })

  test('have no ratio when OpenSSH failed', () => {
    const up = row('up')
    const results = resultsOf(up, [sampled(up, openssh, []), sampled(up, posternTcp, [5e6])])
    assert.deepEqual(results.map(short), [{ name: 'Postern tcp', speed: 5, ratio: null, bar: 1 }])
    assert.match(resultTable('up', results), /Postern tcp \| L4 TLS \| 5 \| – \| – \| 2\.00 \| – \|/)
  })

  test('beside a stalled stream are compared with the same load without one', () => {
    const stalled = row('stalled')
    const results = resultsOf(stalled, [
      sampled(stalled, posternTcp, [100e6], 0),
      sampled(stalled, posternTcp, [95e6], 1),
    ])
    assert.deepEqual(
      results.map(({ ratio, bar }) => ({ ratio, bar })),
      [
        { ratio: 1, bar: null },
        { ratio: 0.95, bar: 0.9 },
      ],
    )
  })

  test('give a chart that names all of them, whatever characters a name has', () => {
    const up = row('up')
    const results = resultsOf(up, [sampled(up, openssh, [200e6]), sampled(up, posternTcp, [300e6])])
    const svg = chart([{ title: 'a < b & c', results }], ['a machine'])
    for (const part of ['OpenSSH -R (L4 TLS)', 'Postern tcp (L4 TLS)', '1.50×', 'a &lt; b &amp; c', 'a machine']) {
      assert.ok(svg.includes(part), part)
    }
    assert.equal(svg.match(/<svg /g)?.length, svg.match(/<\/svg>/g)?.length)
  })
})
