/** A short form of `npm run chaos -- nodes`: one fault of each kind that matters most, under load. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PlannedFault } from '../../chaos/node-faults.ts'
import { nodes } from '../../chaos/nodes.ts'
import { nodesText } from '../../chaos/print.ts'
import { testWorkers } from '../../support/test-workers.ts'

/** Short faults, except for one that outlasts a lease. */
const rounds: readonly (readonly PlannedFault[])[] = [
  [
    { kind: 'kill', node: 0, lastsMs: 500, afterMs: 0 },
    { kind: 'cut', node: 2, lastsMs: 3000, afterMs: 300 },
  ],
  [
    { kind: 'freeze', node: 1, lastsMs: 11_500, afterMs: 0 },
    { kind: 'database restarted', node: 0, lastsMs: 1, afterMs: 1000 },
  ],
  [
    { kind: 'stop', node: 2, lastsMs: 500, afterMs: 0 },
    { kind: 'database silent', node: 0, lastsMs: 3000, afterMs: 200 },
  ],
]

test('three nodes lose only what a fault excuses', { timeout: 600_000 }, async (t) => {
  const closers: (() => unknown)[] = []
  t.after(async () => {
    for (const close of closers) await close()
  })
  const seed = 17
  const report = await nodes(
    { after: (close) => void closers.unshift(close) },
    { forMs: 0, seed, workers: testWorkers, rounds, progress: (line) => t.diagnostic(line) },
  )
  t.diagnostic(nodesText(report))
  assert.deepEqual(report.faults, [])
  assert.equal(report.spans.length, rounds.flat().length)
  const { visits, excused, writes, agents } = report
  const lost = Object.values(excused).reduce((sum, count) => sum + count, 0)
  assert.ok(visits > lost && writes.acknowledged > 0 && agents.came > 0)
})
