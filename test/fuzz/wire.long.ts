/** The long form of `src/link/wire/model.test.ts`, for `npm run fuzz`: many runs of both, with a new seed every time. */
import { randomInt } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { checkHostile, hostileRun } from '../../src/link/wire/testing/test-hostile.ts'
import { checkModel, modelRun } from '../../src/link/wire/testing/test-model.ts'

const RUNS = 20_000

const seed = Number(process.env.POSTERN_FUZZ_SEED ?? randomInt(2 ** 31))

test(`${RUNS} hostile peers (POSTERN_FUZZ_SEED=${seed})`, () => {
  fc.assert(fc.property(hostileRun, checkHostile), { numRuns: RUNS, seed })
})

test(`${RUNS} pairs of sessions (POSTERN_FUZZ_SEED=${seed})`, () => {
  fc.assert(fc.property(modelRun, checkModel), { numRuns: RUNS, seed })
})
