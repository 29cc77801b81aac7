/** Runs test files in a process of their own, and reads what becomes of them. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { WORKERS_VARIABLE } from '../support/test-workers.ts'
import type { FileCost } from './costs.ts'
import { describeFailure, nameOf } from './describe-failure.ts'
import { type Counts, type Report, SPEAKER } from './report-tests.ts'

/** Files that share a process; they run one after the other. */
export interface TestGroup {
  readonly files: readonly string[]
  /** How many workers the servers of these tests have, if not the usual number. */
  readonly workers?: string
}

export interface GroupSettings {
  /** Regular expressions; a test runs when its name matches one, or when there are none. Of a single file only. */
  readonly patterns: readonly string[]
  /** Shows all that the tests print, as they print it, such as the progress of a long one. */
  readonly isTalkative: boolean
  /** A file that runs for longer is killed. */
  readonly fileLimitMs: number
  readonly env: Readonly<Record<string, string>>
  readonly signal: AbortSignal
  readonly print: (text: string) => void
  readonly onFile: () => void
}

export interface GroupOutcome {
  /** What repeats each file that failed. */
  readonly failed: readonly TestGroup[]
  readonly counts: Counts
  readonly costs: readonly FileCost[]
}

export async function runGroup(group: TestGroup, settings: GroupSettings): Promise<GroupOutcome> {
  const { print, signal, isTalkative, fileLimitMs } = settings
  const { files, workers } = group
  const child = spawn(process.execPath, [...flags(settings), ...entry(files)], {
    // In a process group of its own, so that what a test leaves running can be ended with it.
    detached: true,
    // Reports come by a pipe of their own: what tests print cannot be mistaken for them.
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    env: {
      ...process.env,
      ...settings.env,
      ...(workers !== undefined && { [WORKERS_VARIABLE]: workers }),
      // It is there when a test runs us, and stops ours from reporting.
      NODE_TEST_CONTEXT: undefined,
    },
  })
  const closed = once(child, 'close')
  const kill = () => endGroup(child.pid)
  signal.addEventListener('abort', kill)
  if (signal.aborted) kill()

  const failed = new Set<string>()
  const costs: FileCost[] = []
  let counts: Counts | undefined
  let running = { file: files[0] ?? '', workers }
  /** What each file has printed, and which one prints now. */
  const printed = new Map<string, string>()
  let speaker = files[0] ?? ''
  const note = (text: string): void => void printed.set(speaker, `${printed.get(speaker) ?? ''}${text}`)
  const overdue = setTimeout(() => {
    note(`${running.file} ran for more than ${fileLimitMs / 1000} s and was killed\n`)
    kill()
  }, fileLimitMs)
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => {
      // Every second part names who prints what follows.
      for (const [i, part] of text.split(SPEAKER).entries()) {
        if (i % 2 === 1) speaker = part
        else if (isTalkative) print(part)
        else note(part)
      }
    })
  }
  const read = (report: Report) => {
    if (report.began !== undefined) {
      running = { file: report.began, workers }
      overdue.refresh()
    }
    if (report.note !== undefined && !isTalkative) print(`ℹ ${report.note}\n`)
    if (report.failure) {
      failed.add(running.file)
      print((printed.get(running.file) ?? '') + describeFailure(report.failure, running))
      printed.delete(running.file)
    }
    if (report.ended) {
      costs.push({ file: nameOf(running), ...report.ended })
      settings.onFile()
      printed.delete(running.file)
    }
    counts ??= report.counts
  }
  const [, , , reports] = child.stdio
  if (reports instanceof Readable) {
    // A turn later: what was printed before a report may be read after it, in the same turn.
    createInterface({ input: reports }).on('line', (line) => setImmediate(read, JSON.parse(line)))
  }

  const [code, end] = await once(child, 'exit')
  clearTimeout(overdue)
  signal.removeEventListener('abort', kill)
  // What a test left running might still hold the pipes.
  kill()
  await closed
  await nextTurn()
  if ((code !== 0 || !counts) && failed.size === 0) {
    failed.add(running.file)
    const how = code === 0 ? 'before its tests' : `with ${code ?? end}`
    if (!signal.aborted) print(`${printed.get(running.file) ?? ''}✖ ${nameOf(running)}: the process ended ${how}\n`)
  }
  return {
    failed: [...failed].map((file) => ({ ...group, files: [file] })),
    counts: counts ?? { tests: 0, passed: 0, skipped: 0 },
    costs,
  }
}

function flags({ patterns, isTalkative }: GroupSettings): string[] {
  const reporters = [fileURLToPath(new URL('report-tests.ts', import.meta.url)), ...(isTalkative ? ['spec'] : [])]
  return [
    `--import=${new URL('test-owners.ts', import.meta.url).href}`,
    // The same flag as the program has (src/cli/v8-flags.ts). Node's compile cache depends on the flags: with different
    // ones, each server and each test would discard the cache of the other.
    '--no-allocation-site-pretenuring',
    ...reporters.flatMap((each) => [`--test-reporter=${each}`, '--test-reporter-destination=stdout']),
    ...patterns.map((pattern) => `--test-name-pattern=${pattern}`),
  ]
}

/** A file by itself is run as `node --test` runs it, so that patterns mean the same. */
function entry(files: readonly string[]): readonly string[] {
  return files.length === 1 ? files : [fileURLToPath(new URL('share-process.ts', import.meta.url)), ...files]
}

function endGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {
    // No process of the group is left.
  }
}
