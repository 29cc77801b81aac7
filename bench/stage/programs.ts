/** Programs that were started together: what they print, the CPU they use, and their end, by pid and with all they started. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { accessSync, constants } from 'node:fs'
import { basename, join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as after } from 'node:timers/promises'
import { retry, touch } from './ports.ts'
import { isAlive, type ProcessStat, treeOf } from './proc.ts'

/** Of what a program printed, this much is kept for a message, in characters. */
const OUTPUT_KEPT = 16 * 1024

/** How long a program may take to get ready, in milliseconds. */
const START_MS = 15_000

/** How long what a program printed may take to get here, in milliseconds. */
const LAST_WORDS_MS = 500

/** How long a program may take to end by itself when asked, in milliseconds. */
const END_GRACE_MS = 3000
const END_CHECK_MS = 20

export interface Program {
  readonly pid: number
  hasEnded(): boolean
  /** The end of what it printed, on stdout and stderr. */
  output(): string
  /** Resolves once it printed a text that matches; rejects when it ends before, or takes too long. */
  says(text: RegExp, options?: { timeoutMs?: number }): Promise<RegExpExecArray>
  /** Resolves once somebody listens at the port, as this program should bring about; rejects as `says` does. */
  listens(port: number, options?: { timeoutMs?: number }): Promise<void>
  /** Asks it to end, and makes it end, with all that it started. */
  end(): Promise<void>
}

export interface StartOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  /** Hears every line it prints, of which `output` only keeps the last. */
  readonly onLine?: (line: string) => void
}

export class Programs {
  readonly #children = new Map<number, ChildProcess>()
  #isOver = false

  /** The processes started here that still run; what they started themselves is not among them. */
  get pids(): number[] {
    return [...this.#children.keys()]
  }

  start(command: string, args: readonly string[], { env, cwd = '/', onLine }: StartOptions = {}): Program {
    const { child, program } = this.#spawn(command, args, { env, cwd })
    if (onLine) for (const stream of [child.stdout, child.stderr]) createInterface(stream).on('line', onLine)
    return program
  }

  /** Runs a program to its end and gives what it printed on stdout. */
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

  /** Ends all, the last one first, so that an agent leaves before its server. Nothing can be started any more. */
  async end(): Promise<void> {
    this.#isOver = true
    for (const child of [...this.#children.values()].reverse()) await end(child)
  }

  /** Ends all at once, for when there is no time to wait. */
  kill(): void {
    this.#isOver = true
    kill(treeOf(this.pids))
  }

  #spawn(command: string, args: readonly string[], { env, cwd }: { env?: StartOptions['env']; cwd?: string }) {
    if (this.#isOver) throw new Error('it is too late to start a program')
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
        // Its last words may come after its end.
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

/** Where a program is; undefined when it is not installed. Servers are often outside the PATH of plain users. */
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

/** Without what would change Postern or Node behind the back of whoever reads the figures. */
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

/** Whether they ended within the grace. */
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
      // It ended between the look and the signal.
    }
  }
}
