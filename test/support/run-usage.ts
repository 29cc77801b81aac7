/** The usage texts of `npm test`, `npm run fuzz`, `npm run crash` and `npm run soak`. */
import { type LongForm, longRuns } from './choose-tests.ts'

/** The variables that a long run reads, and what it does without them. */
const variables: Readonly<Record<LongForm, string>> = {
  fuzz: `POSTERN_FUZZ_SECONDS=600 lets runs that generate for a time do so for ten minutes,
POSTERN_FUZZ_MUTATIONS=1000000 says how many SSH messages, and POSTERN_FUZZ_SEED=<seed> repeats a run.`,
  crash: 'It takes no variables.',
  soak: `POSTERN_SOAK_SECONDS, POSTERN_SOAK_IDLE_SECONDS and POSTERN_SOAK_SEED are for traffic, POSTERN_SOAK_EXCHANGES for exchanges,
POSTERN_SOAK_NAMES for due-names and due-renewals; each file says what it does without them.`,
}

export function runUsage(long: LongForm | undefined): string {
  if (!long) {
    return `usage: npm test [-- <files, folders or parts of test names>] [--workers 2]
Without words: the checks, then every test. With words: only these tests, without the checks.
--workers 2 gives every server of the tests two workers.`
  }
  return `usage: npm run ${long} [-- <runs, or parts of test names>] [--workers 2]
runs: ${longRuns(long).join(', ')}; without a word, all of them
${variables[long]}`
}
