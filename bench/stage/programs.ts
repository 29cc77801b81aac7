/** Starts programs, collects their output, and ends them by pid together with all their descendants. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { accessSync, constants } from 'node:fs'
import { basename, join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as after } from 'node:timers/promises'
import { retry, touch } from './ports.ts'
import { isAlive, type ProcessStat, treeOf } from './proc.ts'

/** How much of a program's output is kept for error messages, in characters. */
const OUTPUT_KEPT = 16 * 1024

/** How long a program may take to get ready, in milliseconds. */
const START_MS = 15_000

/** How long to wait for the last output of a program that has ended, in milliseconds. */
const LAST_WORDS_MS = 500

/** How long a program may take to end after SIGTERM, in milliseconds. */
const END_GRACE_MS = 3000
const END_CHECK_MS = 20

export interface Program {
  readonly pid: number
  hasEnded(): boolean
  /** The last part of its output, stdout and stderr together. */
  output(): string
  /** Resolves once its output matches; rejects if it ends before, or takes too long. */
  says(text: RegExp, options?: { timeoutMs?: number }): Promise<RegExpExecArray>
  /** Resolves once this port accepts connections; rejects as `says` does. */
  listens(port: number, options?: { timeoutMs?: number }): Promise<void>
  /** Ends it and all its descendants, by force if necessary. */
  end(): Promise<void>
}

export interface StartOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  /** Gets every line of output, of which `output` keeps only the last. */
  readonly onLine?: (line: string) => void
}

export class Programs {
  readonly #children = new Map<number, ChildProcess>()
  #isOver = false

  /** The running processes that were started here, without their descendants. */
  get pids(): number[] {
    return [...this.#children.keys()]
  }

  start(command: string, args: readonly string[], { env, cwd = '/', onLine }: StartOptions = {}): Program {
    const { child, program } = this.#spawn(command, args, { env, cwd })
    if (onLine) for (const stream of [child.stdout, child.stderr]) createInterface(stream).on('line', onLine)
    return program
  }

  /** Runs a program to its end; resolves with its stdout. */
  async run(
    command: string,
    args: readonly string[],
    { timeoutMs, ...options }: StartOptions & { timeoutMs: number },
  ): Promise<string> {
    const { child, program } = this.#spawn(command, args, options)
    let out = ''
    child.stdout?.on('data', (text: string) => {
      out += text
    })
    const timer = setTimeout(() => child.kill('SIGKILL'), timeoutMs)
    const [code, signal] = (await once(child, 'close')) as [number | null, string | null]
    clearTimeout(timer)
    if (code === 0) return out
    const how = signal === 'SIGKILL' ? `did not end within ${timeoutMs} ms` : `ended with ${code ?? signal}`
    throw new Error(`${basename(command)} ${how}: ${program.output().trim()}`)
  }

  /** Ends all, the last one first, so that an agent ends before its server. Nothing can be started afterwards. */
  async end(): Promise<void> {
    this.#isOver = true
    for (const child of [...this.#children.values()].reverse()) await end(child)
  }

  /** Kills all at once, when there is no time to wait. */
  kill(): void {
    this.#isOver = true
    kill(treeOf(this.pids))
  }

  #spawn(command: string, args: readonly string[], { env, cwd }: { env?: StartOptions['env']; cwd?: string }) {
    if (this.#isOver) throw new Error('cannot start programs: the bench is ending')
    const child = spawn(command, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...withoutSettings(process.env), ...env },
      ...(cwd !== undefined && { cwd }),
    })
    let printed = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        printed = (printed + text).slice(-OUTPUT_KEPT)
      })
    }
    const pid = child.pid
    if (pid === undefined) {
      child.on('error', () => {})
      throw new Error(`${command} cannot be started`)
    }
    this.#children.set(pid, child)
    child.on('exit', () => this.#children.delete(pid))
    const output = (): string => printed
    const closed = new Promise((resolve) => child.once('close', resolve))
    const hasEnded = (): boolean => child.exitCode !== null || child.signalCode !== null
    const ready = async <T>(work: () => Promise<T>, timeoutMs = START_MS): Promise<T> => {
      try {
        return await retry(work, { timeoutMs, isLost: hasEnded })
      } catch (cause) {
        // Output may arrive after the program has ended.
        if (hasEnded()) await Promise.race([closed, after(LAST_WORDS_MS)])
        const how = hasEnded() ? 'ended' : `was not ready within ${timeoutMs} ms`
        throw new Error(`${basename(command)} ${how}: ${output().trim()}`, { cause })
      }
    }
    const program: Program = {
      pid,
      hasEnded,
      output,
      says: (text, { timeoutMs } = {}) => ready(async () => found(text, printed), timeoutMs),
      listens: (port, { timeoutMs } = {}) => ready(() => touch(port), timeoutMs),
      end: () => end(child),
    }
    return { child, program }
  }
}

/** The path of a program; undefined when it is not installed. Servers are often outside the PATH of ordinary users. */
export function findProgram(name: string): string | undefined {
  const folders = [...(process.env.PATH ?? '').split(':'), '/usr/sbin', '/usr/local/sbin', '/sbin']
  return folders.map((folder) => join(folder || '.', name)).find(isExecutable)
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

function found(text: RegExp, printed: string): RegExpExecArray {
  const match = text.exec(printed)
  if (!match) throw new Error(`it did not print ${text}`)
  return match
}

/** The environment without settings of Postern and Node, which could change the results unnoticed. */
function withoutSettings(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !/^(POSTERN_|NODE_)/.test(name)))
}

async function end(child: ChildProcess): Promise<void> {
  const roots = child.pid === undefined ? [] : [child.pid]
  const tree = treeOf(roots)
  child.kill('SIGTERM')
  if (await areGone(tree)) return
  const left = [...tree, ...treeOf(roots)]
  kill(left)
  await areGone(left)
}

/** Whether all ended within the grace period. */
async function areGone(processes: readonly ProcessStat[]): Promise<boolean> {
  const deadline = performance.now() + END_GRACE_MS
  while (processes.some(isAlive)) {
    if (performance.now() > deadline) return false
    await after(END_CHECK_MS)
  }
  return true
}

function kill(processes: readonly ProcessStat[]): void {
  for (const each of processes) {
    if (!isAlive(each)) continue
    try {
      process.kill(each.pid, 'SIGKILL')
    } catch {
      // It ended between the check and the signal.
    }
  }
}
