/**
 * `npm test`: the checks, then the dashboard is built, then every test with a PostgreSQL beside it.
 *
 * `npm test -- <paths or name patterns>` runs only these tests, without the checks. `--workers 2` gives every server of the
 * tests two workers; without it each server is one process, and only the files of `two-workers.ts` are run with two as well.
 * `--fuzz`, `--crash` and `--soak` run the long forms instead.
 *
 * Where the kernel counts that others took part of the machine's time during the whole run, the few files that failed are run
 * once more by themselves, and a line says so.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { faultLine } from '../bench/flags.ts'
import { ALONE } from './support/alone.ts'
import { chooseTests } from './support/choose-tests.ts'
import { COSTS_VARIABLE, dearest, readCosts } from './support/file-costs.ts'
import { filesAtOnce, isSlow } from './support/files-at-once.ts'
import { groupTests, writeGroups } from './support/group-tests.ts'
import { startPostgres } from './support/postgres.ts'
import { runChecks } from './support/run-checks.ts'
import { type Outcome, runTests, type TestRun } from './support/run-tests.ts'
import { runUsage } from './support/run-usage.ts'
import { watchStolenTime } from './support/stolen-time.ts'
import { WORKERS_VARIABLE } from './support/test-workers.ts'
import { TWO_WORKERS } from './support/two-workers.ts'

const FILE_LIMIT_MS = 600_000
const LONG_FILE_LIMIT_MS = 4 * 3_600_000

/**
 * From which share of its time on, taken by others, a machine tells nothing of what failed on it: tests wait for clocks of
 * seconds, and a machine that stands still is late for them.
 */
const STOLEN_SHARE = 0.1

/** More files than this do not fail for want of time alone. */
const MAX_AGAIN = 12

/** How many files are named at the end with what they cost. */
const DEAREST = 30

/** How long such a machine is waited for, in milliseconds, and how often it is looked at. */
const SLOW_LIMIT_MS = 600_000
const SLOW_LOOK_MS = 15_000

async function main(signal: AbortSignal): Promise<boolean> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      fuzz: { type: 'boolean' },
      crash: { type: 'boolean' },
      soak: { type: 'boolean' },
      workers: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  })
  const long = values.fuzz ? 'fuzz' : values.crash ? 'crash' : values.soak ? 'soak' : undefined
  if (values.help) {
    console.log(runUsage(long))
    return true
  }
  if (values.workers !== undefined && !/^\d{1,2}$/.test(values.workers)) {
    throw new Error(`--workers takes a number of workers, not ${values.workers}`)
  }
  const chosen = chooseTests(positionals, long)
  const whole = long === undefined && positionals.length === 0

  const checked = whole ? await runChecks(signal) : true
  if (signal.aborted) return false

  // Servers of the tests read it when they start.
  execFileSync(process.execPath, ['build/page.js'], { stdio: 'inherit' })
  const atOnce = filesAtOnce()
  const stolenShare = watchStolenTime()
  const started = performance.now()
  const postgres = await startPostgres({ durable: long === 'crash' })
  say(`PostgreSQL is up (${seconds(started)})`)
  const compiled = mkdtempSync(join(tmpdir(), 'postern-compiled-'))
  const grouped = mkdtempSync(join(tmpdir(), 'postern-groups-'))
  try {
    // The tests start some hundred processes of the same code: each takes what another has compiled.
    const costs = join(grouped, 'costs')
    const env = { POSTERN_TEST_POSTGRES_URL: postgres.url, NODE_COMPILE_CACHE: compiled, [COSTS_VARIABLE]: costs }
    const run = (
      { files, patterns }: Pick<TestRun, 'files' | 'patterns'>,
      { again = [], side = atOnce }: { again?: readonly string[]; side?: number } = {},
    ) => {
      const named = patterns.map((pattern) => ` named /${pattern}/`).join(',')
      const servers = values.workers === undefined ? '' : `, servers with workers: ${values.workers}`
      const twice = again.length === 0 ? '' : `, ${again.length} of them again with two workers`
      say(`tests: ${files.length} ${files.length === 1 ? 'file' : 'files'}${named}${servers}${twice}; ${side} at once`)
      const groups = [
        ...again.map((file) => ({ files: [file], workers: '2' })),
        ...groupTests(files).map((each) => ({ files: each })),
      ]
      return runTests({
        files: whole ? writeGroups(groups, mkdtempSync(join(grouped, 'run-'))) : files,
        patterns,
        signal,
        atOnce: side,
        isTalkative: long !== undefined,
        fileLimitMs: long ? LONG_FILE_LIMIT_MS : FILE_LIMIT_MS,
        env: { ...env, [WORKERS_VARIABLE]: values.workers ?? '0' },
      })
    }
    let passed = whole
      ? await run(
          { ...chosen, files: chosen.files.filter(isBeside) },
          { again: values.workers === undefined ? TWO_WORKERS : [] },
        )
      : await run(chosen)
    if (whole && !signal.aborted) passed = both(passed, await run({ files: ALONE, patterns: [] }))
    const { failed = [] } = passed
    const share = stolenShare()
    const isVoid = whole && failed.length > 0 && failed.length <= MAX_AGAIN && share >= STOLEN_SHARE
    if (isVoid && !signal.aborted) {
      const percent = Math.round(100 * share)
      say(`others took ${percent} % of this machine's time; what failed is run once more: ${failed.join(', ')}`)
      await untilUsual(signal)
      const files = failed.filter((file) => !file.includes(' '))
      const again = failed.filter((file) => file.includes(' ')).map((file) => file.slice(0, file.indexOf(' ')))
      const { ok } = await run({ files, patterns: [] }, { again, side: 1 })
      say(ok ? 'by themselves all of these pass' : 'by themselves not all of these pass')
      passed = { ...passed, ok }
    }
    if (whole && existsSync(costs)) say(`the dearest files:\n${dearest(readCosts(costs), DEAREST)}`)
    const log = passed.ok ? '' : await postgres.log()
    if (log !== '') say(`the last lines of PostgreSQL's log:\n${log}`)
    const counts = Object.entries(passed.counts).map(([name, count]) => `${name} ${count}`)
    if (counts.length > 0) say(counts.join(', '))
    if (!checked) say('the checks failed; see above')
    return checked && passed.ok
  } finally {
    for (const folder of [compiled, grouped]) rmSync(folder, { recursive: true, force: true })
    await postgres.stop()
  }
}

async function untilUsual(signal: AbortSignal): Promise<void> {
  const until = performance.now() + SLOW_LIMIT_MS
  while (isSlow() && performance.now() < until && !signal.aborted) await setTimeout(SLOW_LOOK_MS)
}

function isBeside(file: string): boolean {
  return !ALONE.includes(file)
}

function both(first: Outcome, second: Outcome): Outcome {
  const names = new Set([...Object.keys(first.counts), ...Object.keys(second.counts)])
  const sum = (name: string) => String(Number(first.counts[name] ?? 0) + Number(second.counts[name] ?? 0))
  const failed = first.failed && second.failed && [...first.failed, ...second.failed]
  return { ok: first.ok && second.ok, failed, counts: Object.fromEntries([...names].map((name) => [name, sum(name)])) }
}

function say(line: string): void {
  console.log(`# ${line}`)
}

function seconds(since: number): string {
  return `${((performance.now() - since) / 1000).toFixed(1)} s`
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
