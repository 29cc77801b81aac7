import assert from 'node:assert/strict'
import { test } from 'node:test'
import { signsOfLife } from './agent-link.ts'
import { listenerLimits } from './tunnel-limits.ts'

const rows: [what: string, intervalMs: number, toleranceMs: number, silenceMs: number][] = [
  ['what agents announce by default', 10_000, 15_000, 25_000],
  ['less', 1000, 2000, 3000],
  ['much more', 60_000, 60_000, 60_000],
  ['a long interval', 59_000, 1, 59_001],
  ['as good as nothing', 1, 1, 1000],
  ['more than a timer can count', 2 ** 50, 2 ** 50, 60_000],
]

for (const [what, heartbeatIntervalMs, heartbeatToleranceMs, silence] of rows) {
  test(`an agent that announces ${what} may be silent for ${silence} ms, and is pinged meanwhile`, () => {
    const signs = signsOfLife({ heartbeatIntervalMs, heartbeatToleranceMs }, listenerLimits)
    assert.equal(signs.silenceMs, silence)
    assert.ok(signs.intervalMs > 0 && signs.intervalMs <= silence / 3)
    // The longest time until a lost ping is noticed: it is sent after an interval, and waited for this long.
    const answerMs = signs.intervalMs + signs.toleranceMs
    assert.ok(answerMs > 0)
    assert.ok(signs.intervalMs + answerMs <= silence + 0.001)
  })
}
