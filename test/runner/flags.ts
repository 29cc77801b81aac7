/** Reads the words after `npm test --`, and says what they may be. */
import { parseArgs } from 'node:util'
import { type LongForm, longRuns } from './choose-tests.ts'
import type { TestKind } from './test-kinds.ts'

export interface RunFlags {
  /** The tests to choose from, where no words name any. */
  readonly kind: TestKind
  readonly long: LongForm | undefined
  readonly words: readonly string[]
  /** Whether the words are about changes: nothing, or the revision since which a file counts as changed. */
  readonly isChanged: boolean
  readonly workers: string | undefined
  /** Whether what files take is written down. */
  readonly isWeighed: boolean
  readonly isHelp: boolean
}

export function readFlags(args: readonly string[]): RunFlags {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      programs: { type: 'boolean' },
      unit: { type: 'boolean' },
      fuzz: { type: 'boolean' },
      crash: { type: 'boolean' },
      soak: { type: 'boolean' },
      changed: { type: 'boolean', default: false },
      weigh: { type: 'boolean', default: false },
      workers: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
  if (values.workers !== undefined && !/^\d{1,2}$/.test(values.workers)) {
    throw new Error(`--workers takes a number of workers, not ${values.workers}`)
  }
  if (values.changed && positionals.length > 1) {
    throw new Error(`--changed takes one revision, not ${positionals.join(' ')}`)
  }
  return {
    kind: values.programs ? 'programs' : values.unit ? 'unit' : 'usual',
    long: values.fuzz ? 'fuzz' : values.crash ? 'crash' : values.soak ? 'soak' : undefined,
    words: positionals,
    isChanged: values.changed,
    workers: values.workers,
    isWeighed: values.weigh,
    isHelp: values.help,
  }
}

/** The variables that a long run reads, and what it does without them. */
const variables: Readonly<Record<LongForm, string>> = {
  fuzz: `POSTERN_FUZZ_SECONDS=600 lets runs that generate for a time do so for ten minutes,
POSTERN_FUZZ_MUTATIONS=1000000 says how many SSH messages, and POSTERN_FUZZ_SEED=<seed> repeats a run.`,
  crash: 'It takes no variables.',
  soak: `POSTERN_SOAK_SECONDS, POSTERN_SOAK_IDLE_SECONDS and POSTERN_SOAK_SEED are for traffic, POSTERN_SOAK_EXCHANGES for exchanges,
POSTERN_SOAK_NAMES for due-names and due-renewals; each file says what it does without them.`,
}

const COMMANDS: Readonly<Record<TestKind, [command: string, runs: string]>> = {
  usual: ['npm test', 'the checks, and every test but those of programs'],
  programs: [
    'npm run test:programs',
    'every test that starts programs: servers in processes of their own, ssh, browsers',
  ],
  unit: ['npm run test:unit', 'every test that needs no store, process or server'],
}

export function runUsage({ kind, long }: Pick<RunFlags, 'kind' | 'long'>): string {
  if (!long) {
    const [command, runs] = COMMANDS[kind]
    return `usage: ${command} [-- <files, folders or parts of test names>] [--changed [revision]] [--workers 2] [--weigh]
Without words: ${runs}. With words: only these tests, without the checks.
--changed runs only the tests that files changed since the revision can reach; by default, since the branch left its upstream.
--workers 2 gives every server of the tests two workers.
--weigh writes to test/weights.json how long each file takes.`
  }
  return `usage: npm run ${long} [-- <runs, or parts of test names>] [--workers 2]
runs: ${longRuns(long).join(', ')}; without a word, all of them
${variables[long]}`
}
