/** A person who follows a page: with a home folder, a shell in which commands run in order, and further terminals. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ownLauncher } from '../support/own-launcher.ts'
import { until } from '../support/until.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))

/** Pages start the same code many times: each process reuses what another has compiled. */
const compiled = process.env.NODE_COMPILE_CACHE ?? mkdtempSync(join(tmpdir(), 'postern-compiled-'))
process.once('exit', () => {
  if (process.env.NODE_COMPILE_CACHE === undefined) rmSync(compiled, { recursive: true, force: true })
})

/** What a program prints once it is ready: a server, an agent, or our own service. */
const READY = /^Listening: |tunnel online|^up$/m

/** How long a command may take, in milliseconds: it starts programs, and the machine may be busy. */
const LIMIT_MS = 60_000

/** Servers on a page take any free port, and listen on this machine only. */
const anyPort = {
  POSTERN_API_LISTEN: '127.0.0.1:0',
  POSTERN_METRICS_LISTEN: '127.0.0.1:0',
  POSTERN_AGENT_LISTEN: '127.0.0.1:0',
  POSTERN_SSH_LISTEN: '127.0.0.1:0',
  POSTERN_HTTPS_LISTEN: '127.0.0.1:0',
  POSTERN_HTTP_LISTEN: '127.0.0.1:0',
  POSTERN_TCP_LISTEN: '127.0.0.1',
}

export class Reader {
  readonly folder = mkdtempSync(join(tmpdir(), 'postern-reader-'))
  readonly #env: Record<string, string>
  readonly #running: ChildProcess[] = []
  #shell: { readonly child: ChildProcess; printed: string } | undefined
  /** All that was printed so far, in any terminal. */
  #printed = ''
  #blocks = 0

  constructor(env: Readonly<Record<string, string>> = {}) {
    this.#env = { ...anyPort, ...env }
    this.program('postern', `exec '${process.execPath}' '${ownLauncher}' "$@"`)
    // In a clone `npx` runs the clone itself.
    this.program('npx', '[ "$1" = postern ] || exit 127\nshift\nexec postern "$@"')
    this.program('node', `exec '${process.execPath}' "$@"`)
    this.write('.curlrc', 'silent\nshow-error\nwrite-out = "%{stderr}\\ncurl was answered %{http_code}\\n"\n')
    mkdirSync(join(this.folder, 'node_modules'))
    symlinkSync(root, join(this.folder, 'node_modules', 'postern'))
  }

  get printed(): string {
    return this.#printed
  }

  write(name: string, text: string): void {
    const file = join(this.folder, name)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
  }

  /** Puts a program first on the path. */
  program(name: string, lines: string): void {
    this.write(`bin/${name}`, `#!/bin/sh\n${lines}\n`)
    chmodSync(join(this.folder, 'bin', name), 0o755)
  }

  /** Sets variables for the commands that follow, such as the addresses of a server that has started. */
  meet(env: Readonly<Record<string, string>>): void {
    Object.assign(this.#env, env)
    for (const [name, value] of Object.entries(env)) this.#shell?.child.stdin?.write(`export ${name}='${value}'\n`)
  }

  /** Runs commands in the one shell of the page; the first that fails ends it, unless `mayFail`. Resolves with what they printed. */
  async run(text: string, { mayFail = false } = {}): Promise<string> {
    this.#shell ??= this.#open()
    const { child } = this.#shell
    const [file, mark] = [`.block-${++this.#blocks}`, `block ${this.#blocks} is done`]
    this.write(file, text)
    this.#shell.printed = ''
    // Read from a file, so that no command takes the next one as its input.
    child.stdin?.write(`. ./${file} </dev/null${mayFail ? ' || :' : ''}\necho; echo '${mark}'\n`)
    const shell = this.#shell
    await until('the commands are done', () => shell.printed.includes(mark) || hasEnded(child), {
      limitMs: LIMIT_MS,
    })
    const output = shell.printed.replace(`\n${mark}\n`, '')
    if (!shell.printed.includes(mark)) throw new Error(`a command failed; output:\n${output}`)
    return output
  }

  /** Runs a command in a terminal of its own, where it stays. Resolves with its output once it is ready. */
  async stays(text: string): Promise<string> {
    return (await this.#untilReady(text)).printed()
  }

  /** Runs a command in a terminal of its own until it is ready, and then stops it, which must succeed. */
  async passes(text: string): Promise<string> {
    const { child, printed } = await this.#untilReady(`exec ${text}`)
    const ended = once(child, 'close')
    child.kill('SIGTERM')
    await ended
    if (child.exitCode !== 0) throw new Error(`the program exited with ${child.exitCode}; output:\n${printed()}`)
    return printed()
  }

  /** Ends all programs that stay; the shell and the files in the folder remain. */
  async endAll(): Promise<void> {
    await Promise.all(this.#running.filter((child) => child !== this.#shell?.child).map(end))
  }

  async close(): Promise<void> {
    await Promise.all(this.#running.map(end))
    rmSync(this.folder, { recursive: true, force: true })
  }

  async #untilReady(text: string): Promise<{ child: ChildProcess; printed: () => string }> {
    const child = this.#spawn(['-eu', '-c', text])
    let printed = ''
    this.#listen(child, (more) => {
      printed += more
    })
    await until('the program is ready', () => READY.test(printed) || hasEnded(child), { limitMs: LIMIT_MS })
    if (!READY.test(printed)) throw new Error(`the program ended early; output:\n${printed}`)
    return { child, printed: () => printed }
  }

  #open(): { child: ChildProcess; printed: string } {
    const child = this.#spawn(['-eu', '-o', 'pipefail'])
    const shell = { child, printed: '' }
    this.#listen(child, (more) => {
      shell.printed += more
    })
    return shell
  }

  #spawn(args: readonly string[]): ChildProcess {
    const child = spawn('bash', ['--noprofile', '--norc', ...args], {
      cwd: this.folder,
      env: {
        HOME: this.folder,
        PATH: `${join(this.folder, 'bin')}:${process.env.PATH}`,
        NODE_COMPILE_CACHE: compiled,
        ...this.#env,
      },
      stdio: ['pipe', 'pipe', 'pipe'],
      // A process group of its own, so that everything it started can be ended.
      detached: true,
    })
    child.stdin?.on('error', () => {})
    this.#running.push(child)
    return child
  }

  #listen(child: ChildProcess, onText: (text: string) => void): void {
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.#printed += text
        onText(text)
      })
    }
  }
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null
}

async function end(child: ChildProcess): Promise<void> {
  const isClosed = hasEnded(child) ? Promise.resolve() : once(child, 'close')
  try {
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
  } catch {
    // No process of the group is left.
  }
  await isClosed
}
