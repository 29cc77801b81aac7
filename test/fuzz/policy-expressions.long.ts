/**
 * Hostile expressions against one server, for `npm run fuzz`: 1,000 of them, or as many as fit into `POSTERN_FUZZ_SECONDS`.
 * Each is refused, or evaluated for a visitor; no turn of the event loop may take over 20 ms of processor time. One that
 * seems to take longer is served again, since its own cost is the same each time.
 */
import { randomInt } from 'node:crypto'
import { fuzzExpressions } from './policy-expressions-run.ts'

fuzzExpressions({
  seed: Number(process.env.POSTERN_FUZZ_SEED ?? randomInt(2 ** 31)),
  expressions: 1000,
  seconds: Number(process.env.POSTERN_FUZZ_SECONDS ?? 0),
  isTalkative: true,
})
