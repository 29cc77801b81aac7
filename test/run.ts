/** `npm test`, `npm run test:programs`, `npm run test:unit` and the long runs; `--help` says what each runs. */
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { faultLine } from '../bench/flags.ts'
import { againstBudget } from './runner/budget.ts'
import { dearest } from './runner/costs.ts'
import { repeating } from './runner/describe-failure.ts'
import { readFlags, runUsage } from './runner/flags.ts'
import { type Plan, planRun } from './runner/plan-run.ts'
import { showProgress } from './runner/progress.ts'
import { ONE_BY_ONE, type Outcome, runAll } from './runner/run-all.ts'
import type { GroupSettings } from './runner/run-group.ts'
import { usualCrew } from './runner/run-jobs.ts'
import { selectTests } from './runner/select-tests.ts'
import { STOLEN_SHARE, untilOurs, watchStolenTime } from './runner/stolen-time.ts'
import { writeWeights } from './runner/weights.ts'
import { LAUNCHER_VARIABLE } from './support/own-launcher.ts'
import { startPostgres } from './support/postgres.ts'
import { WORKERS_VARIABLE } from './support/test-workers.ts'

const FILE_LIMIT_MS = 600_000
const LONG_FILE_LIMIT_MS = 4 * 3_600_000

/** How many files are named at the end with what they cost. */
const DEAREST = 30

/** More files than this do not fail for want of time alone. */
const MAX_AGAIN = 12

const { dot, print } = showProgress()

async function main(signal: AbortSignal): Promise<boolean> {
  const flags = readFlags(process.argv.slice(2))
  const { kind, long, workers } = flags
  if (flags.isHelp) {
    console.log(runUsage(flags))
    return true
  }
  const selected = selectTests(flags)
  const { files, patterns, isWhole } = selected
  if (selected.note !== undefined) say(selected.note)
  if (files.length === 0) return true

  const folder = mkdtempSync(join(tmpdir(), 'postern-run-'))
  const program = join(folder, 'package')
  const [postgres] = await Promise.all([
    kind === 'unit' ? undefined : startPostgres({ durable: long === 'crash' }),
    // Servers of the tests read it when they start.
    node('build/page.js'),
    kind === 'programs' && node('build/bundled-package.ts', program),
  ])
  try {
    const plan = planRun(selected, flags)
    say(plan.summary)
    const outcome = await runPlan(plan, {
      patterns,
      isTalkative: long !== undefined || files.length === 1,
      fileLimitMs: long ? LONG_FILE_LIMIT_MS : FILE_LIMIT_MS,
      env: {
        // The tests start some hundred processes of the same code: each takes what another has compiled.
        NODE_COMPILE_CACHE: join(folder, 'compiled'),
        [WORKERS_VARIABLE]: workers ?? '0',
        ...(postgres && { POSTERN_TEST_POSTGRES_URL: postgres.url }),
        ...(kind === 'programs' && { [LAUNCHER_VARIABLE]: join(program, 'bin', 'postern.js') }),
      },
      signal,
      print,
      onFile: dot,
    })
    if (flags.isWeighed) writeWeights(outcome.costs)
    if (isWhole) say(`the dearest files:\n${dearest(outcome.costs, DEAREST)}`)
    const ok = outcome.failed.length === 0 && outcome.failedChecks.length === 0
    const log = ok ? '' : await postgres?.log()
    if (log) say(`the last lines of PostgreSQL's log:\n${log}`)
    sayOutcome(outcome)
    return ok
  } finally {
    rmSync(folder, { recursive: true, force: true })
    await postgres?.stop()
    if (isWhole && !signal.aborted) say(againstBudget(kind, performance.now() / 1000))
  }
}

/** If others took much of the machine's time during the run, the few files that failed are run once more. */
async function runPlan({ groups, checks }: Plan, settings: GroupSettings): Promise<Outcome> {
  const { signal } = settings
  const stolenShare = watchStolenTime()
  const outcome = await runAll(groups, checks, usualCrew(), settings)
  const share = stolenShare()
  const { length } = outcome.failed
  if (length === 0 || length > MAX_AGAIN || share < STOLEN_SHARE || signal.aborted) return outcome
  say(`others took ${Math.round(100 * share)} % of this machine's time; what failed is run once more: ${length} files`)
  await untilOurs(signal)
  const { failed } = await runAll(outcome.failed, [], ONE_BY_ONE, settings)
  return { ...outcome, failed }
}

function sayOutcome({ failed, failedChecks, counts: { tests, passed, skipped } }: Outcome): void {
  say(`tests ${tests}, passed ${passed}, failed ${tests - passed - skipped}, skipped ${skipped}`)
  for (const check of failedChecks) say(`failed: ${check}`)
  for (const { files, workers } of failed) {
    for (const file of files) say(`failed: ${repeating(null, { file, workers })}`)
  }
}

async function node(...args: string[]): Promise<void> {
  const { stdout, stderr } = await promisify(execFile)(process.execPath, args)
  print(stdout + stderr)
}

function say(line: string): void {
  print(`# ${line}\n`)
}

const interrupted = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => interrupted.abort())
try {
  const ok = await main(interrupted.signal)
  process.exitCode = interrupted.signal.aborted ? 130 : ok ? 0 : 1
} catch (error) {
  say(error instanceof Error ? faultLine(error) : String(error))
  process.exitCode = 2
}
