/** Runs the real program in a separate process, through its launcher. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { databaseFlags } from './database-flags.ts'
import { ownLauncher, sourceLauncher } from './own-launcher.ts'
import { testWorkers } from './test-workers.ts'

export interface Run {
  /** The `bin/postern.js` of another `postern` than ours. */
  readonly launcher?: string
  /** By default the Node that runs the tests. */
  readonly node?: string
  readonly env?: Readonly<Record<string, string>>
  /** Flags of Node itself. */
  readonly nodeFlags?: readonly string[]
  /** Opens a message channel for code that the test loads into the process. */
  readonly hasChannel?: boolean
  /** Kills it with SIGKILL when aborted. */
  readonly signal?: AbortSignal
  /** Open files for its stdout and stderr; without them the output is kept in memory. */
  readonly files?: { readonly out?: number; readonly err?: number }
}

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly out: string
  readonly err: string
}

export interface ServeOptions extends Run {
  readonly dataDir: string
  readonly databaseUrl?: string
  /** Flags without dashes. */
  readonly flags?: Readonly<Record<string, string>>
}

/** A server on free ports, ready to serve. */
export interface ServerProcess {
  readonly child: ChildProcess
  readonly url: string
  readonly metricsUrl: string
  /** The addresses for agents, SSH clients, and visitors with and without TLS: `host:port`. */
  readonly agents: string
  readonly ssh: string
  readonly https: string
  readonly http: string
  readonly ended: Promise<Ended>
  /** What it printed so far, and what it logged. */
  out(): string
  log(): string
  kill(signal: NodeJS.Signals): void
  /** Sends SIGTERM, and resolves with how it ended. */
  stop(): Promise<Ended>
  /** Resolves once it printed a text that matches, on stdout or stderr. */
  says(text: RegExp): Promise<void>
}

/** Runs `postern` to its end. */
export async function postern(args: readonly string[], run: Run = {}): Promise<Ended> {
  return start(args, run).ended
}

/** Starts `postern serve`; rejects when it ends before it is ready. */
export async function serve(options: ServeOptions): Promise<ServerProcess> {
  const running = start(serveArgs(options), options)
  const listening = /^Listening: API (\S+), metrics (\S+), agents (\S+), HTTPS (\S+), HTTP (\S+)$/m
  await running.says(listening)
  const [, url = '', metricsUrl = '', agents = '', https = '', http = ''] = listening.exec(running.out()) ?? []
  const [, ssh = ''] = /^SSH: (\S+), host key/m.exec(running.out()) ?? []
  const kill = (signal: NodeJS.Signals) => void running.child.kill(signal)
  return {
    ...running,
    url,
    metricsUrl,
    agents,
    ssh,
    https,
    http,
    kill,
    stop() {
      kill('SIGTERM')
      return running.ended
    },
  }
}

export function serveArgs({ dataDir, databaseUrl, flags }: ServeOptions): string[] {
  const all = {
    'data-dir': dataDir,
    ...(databaseUrl !== undefined && databaseFlags(databaseUrl)),
    'api-listen': '127.0.0.1:0',
    'metrics-listen': '127.0.0.1:0',
    'agent-listen': '127.0.0.1:0',
    'ssh-listen': '127.0.0.1:0',
    'https-listen': '127.0.0.1:0',
    'http-listen': '127.0.0.1:0',
    'tcp-listen': '127.0.0.1',
    'log-format': 'json',
    workers: String(testWorkers),
    ...flags,
  }
  return ['serve', ...Object.entries(all).flatMap(([name, value]) => [`--${name}`, value])]
}

/** Starts `postern` with any command. */
export function start(
  args: readonly string[],
  {
    node = process.execPath,
    env = {},
    nodeFlags = [],
    // With its own flags a test looks into the program, or loads code into it, which knows the sources.
    launcher = nodeFlags.length > 0 ? sourceLauncher : ownLauncher,
    hasChannel = false,
    signal,
    files,
  }: Run = {},
) {
  const child: ChildProcess = spawn(node, [...nodeFlags, launcher, ...args], {
    stdio: ['ignore', files?.out ?? 'pipe', files?.err ?? 'pipe', ...(hasChannel ? ['ipc' as const] : [])],
    // In a folder without a settings file, and without the caller's settings.
    cwd: '/',
    env: { ...withoutSettings(process.env), ...env },
  })
  signal?.addEventListener('abort', () => child.kill('SIGKILL'))
  const printed = { out: '', err: '' }
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    printed.out += text
  })
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    printed.err += text
  })
  // `close` rather than `exit`, so that all of its output has arrived.
  const ended = once(child, 'close').then(([code, signal]): Ended => ({ code, signal, ...printed }))
  return {
    child,
    ended,
    out: () => printed.out,
    log: () => printed.err,
    says: (text: RegExp) => untilPrinted(child, printed, text),
  }
}

function untilPrinted(child: ChildProcess, printed: { out: string; err: string }, text: RegExp): Promise<void> {
  return new Promise((resolve, reject) => {
    const check = () => {
      if (text.test(printed.out) || text.test(printed.err)) resolve()
    }
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', check)
    child.once('close', (code, signal) => reject(new Error(`ended with ${code ?? signal}: ${printed.err}`)))
    check()
  })
}

function withoutSettings(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !/^(POSTERN|PG|NODE_(?!COMPILE_CACHE))/.test(name)))
}
