/** What `npm run fuzz -- policy-meter` is made of: its policies are accepted, and what costs more than it pays is found. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BadValue } from '../../src/lib/shape/check.ts'
import { Refusal } from '../../src/model/errors.ts'
import { actionNames } from '../../src/modules/policy/engine/actions.ts'
import { compile } from '../../src/modules/policy/testing/test-policy.ts'
import { seeded } from './hostile-documents.ts'
import { hostilePolicy } from './hostile-policies.ts'
import { fitLine, outliers, overcharged } from './policy-meter.ts'
import type { Measured } from './policy-meter-process.ts'

/** Their providers are elsewhere, or they end connections. */
const leftOut = ['oauth', 'openid-connect', 'close-connection']

test('its policies are the same for the same seed, are mostly accepted, and have every action', () => {
  const used = new Set<string>()
  let accepted = 0
  const SEEDS = 60
  for (let seed = 0; seed < SEEDS; seed++) {
    const { inbound, outbound } = hostilePolicy(seeded(seed))
    assert.deepEqual({ inbound, outbound }, hostilePolicy(seeded(seed)))
    for (const { actions } of [...inbound, ...outbound]) for (const { type } of actions) used.add(type)
    try {
      compile({ inbound: [...inbound], outbound: [...outbound] })
      accepted++
    } catch (error) {
      assert.ok(error instanceof BadValue || error instanceof Refusal, String(error))
    }
  }
  assert.ok(accepted > SEEDS / 3, String(accepted))
  assert.deepEqual([...used, ...leftOut].toSorted(), [...actionNames].toSorted())
})

test('the line goes through the middle, and what lies far above it is found', () => {
  const at = (steps: number, micros: number, isSpent = false): Measured => ({
    ...{ seed: steps, steps, micros, isSpent },
    policy: { inbound: [], outbound: [] },
  })
  const usual = [1000, 2000, 300_000, 500_000, 900_000].map((steps) => at(steps, 20 + steps / 1000))
  const spent = at(2_000_000, 300, true)
  const [dear, cheap] = [at(400_000, 2000), at(1_000_000, 200)]
  const line = fitLine([...usual, spent, dear])
  assert.ok(Math.abs(line.microsAStep - 0.001) < 0.0005, String(line.microsAStep))
  assert.deepEqual(outliers([...usual, spent, dear, cheap], line), [dear])
  assert.deepEqual(overcharged([...usual, spent, dear, cheap], line), [cheap])
})
