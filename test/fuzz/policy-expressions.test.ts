/** A small share of the hostile expressions of `npm run fuzz`. */
import { randomInt } from 'node:crypto'
import { fuzzExpressions } from './policy-expressions-run.ts'

fuzzExpressions({
  seed: Number(process.env.POSTERN_FUZZ_SEED ?? randomInt(2 ** 31)),
  expressions: 20,
  seconds: 0,
  isTalkative: false,
})
