/** Runs test files with `node --test` in a separate process group, and kills the group when it hangs. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { stripVTControlCharacters } from 'node:util'
import type { Chosen } from './choose-tests.ts'

export interface TestRun extends Chosen {
  readonly signal: AbortSignal
  readonly fileLimitMs: number
  /** How many files run at once. */
  readonly atOnce: number
  /** Whether the output of passing tests is shown too, such as the progress of a long one. */
  readonly isTalkative: boolean
  readonly env: Readonly<Record<string, string>>
}

export interface Outcome {
  readonly ok: boolean
  /** Node's own counts: tests, pass, fail and so on; empty when the run ended before them. */
  readonly counts: Readonly<Record<string, string>>
  /** The files with a failed test, as the report names them; undefined if anything else failed or did not run. */
  readonly failed: readonly string[] | undefined
}

/** A run counts as hung when it prints nothing for the time limit of a file and this much more. */
const SILENCE_GRACE_MS = 60_000
/** How long node may take to report what was running, after it was told to end. */
const LAST_WORDS_MS = 5_000

export async function runTests(run: TestRun): Promise<Outcome> {
  const { files, patterns, signal, fileLimitMs, atOnce, isTalkative, env } = run
  const color = process.stdout.isTTY ? { FORCE_COLOR: '1' } : {}
  const child = spawn(process.execPath, [...flags(patterns, isTalkative, atOnce), ...files], {
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
    // Without NODE_TEST_CONTEXT, node reports in readable form, even when a test runs us.
    env: {
      ...process.env,
      ...color,
      ...env,
      POSTERN_TEST_FILE_LIMIT_MS: String(fileLimitMs),
      NODE_TEST_CONTEXT: undefined,
    },
  })
  const exit = once(child, 'exit')
  const killGroup = (name: NodeJS.Signals) => endGroup(child.pid, name)

  let killing: NodeJS.Timeout | undefined
  const end = () => {
    child.kill('SIGINT')
    killing ??= setTimeout(killGroup, LAST_WORDS_MS, 'SIGKILL')
  }
  const hung = () => {
    console.log('\n# the tests hang: they printed nothing for too long')
    end()
  }
  const silence = setTimeout(hung, fileLimitMs + SILENCE_GRACE_MS)
  child.stdout.on('data', (chunk) => {
    silence.refresh()
    process.stdout.write(chunk)
  })
  const counted = countIn(child.stdout)
  signal.addEventListener('abort', end)
  if (signal.aborted) end()

  const [code] = await exit
  signal.removeEventListener('abort', end)
  for (const timer of [silence, killing]) clearTimeout(timer)
  // Kills what a test left running, which might still hold our pipe open.
  killGroup('SIGKILL')
  return { ok: code === 0, ...(await counted) }
}

function flags(patterns: readonly string[], isTalkative: boolean, atOnce: number): string[] {
  const reporter =
    isTalkative || process.stdout.isTTY ? 'spec' : fileURLToPath(new URL('compact-reporter.ts', import.meta.url))
  return [
    ...['file-limit.ts', 'test-owners.ts'].map((file) => `--import=${new URL(file, import.meta.url).href}`),
    // The same flag as the program has (src/cli/v8-flags.ts). Node's compile cache depends on the flags: with different
    // ones, each server and each test would discard the cache of the other.
    '--no-allocation-site-pretenuring',
    '--test',
    `--test-concurrency=${atOnce}`,
    `--test-reporter=${reporter}`,
    ...patterns.map((pattern) => `--test-name-pattern=${pattern}`),
  ]
}

async function countIn(output: NodeJS.ReadableStream): Promise<Pick<Outcome, 'counts' | 'failed'>> {
  const counts: Record<string, string> = {}
  const failed = new Set<string>()
  let [isSummary, isKnown] = [false, true]
  for await (const coloured of createInterface({ input: output })) {
    const line = stripVTControlCharacters(coloured)
    const [, name, count] = /^ℹ (tests|pass|fail|cancelled|skipped|todo) (\d+)$/.exec(line) ?? []
    if (name && count) counts[name] = count
    // The summary that follows has the same failures again, by the names of their tests.
    if (line === '✖ failing tests:') isSummary = true
    if (isSummary || !line.startsWith('✖ ')) continue
    const [, file] = /^✖ ((?:src|test|bench)\/\S+\.test\.ts(?: with \d+ workers)?) \(/.exec(line) ?? []
    if (file) failed.add(file)
    else isKnown = false
  }
  return { counts, failed: isKnown && counts.cancelled === '0' ? [...failed] : undefined }
}

function endGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  try {
    if (pid !== undefined) process.kill(-pid, signal)
  } catch {
    // No process of the group is left.
  }
}
