/** Stands in for systemd: passes open sockets to the server at each start, and keeps them open in between. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { createInterface } from 'node:readline'
import { ownLauncher } from './own-launcher.ts'
import { until } from './until.ts'

/** A socket that is passed under a name. */
export interface Handed {
  readonly name: string
  readonly fd: number
}

export interface ServiceManager {
  /** The output of the server so far, on stdout and stderr, over all its starts. */
  printed(): string
  /** Starts the server; resolves with its process id as soon as it runs. */
  start(): Promise<number>
  /** Resolves with the exit code of the latest server, once it has ended. */
  ended(): Promise<number>
  end(): Promise<void>
}

// It holds the sockets and never accepts. What it starts has the process id in LISTEN_PID, as with systemd.
const script = `
  while read line; do
    sh -c 'LISTEN_PID=$$ exec "$@"' server "$@" </dev/null >&2 &
    echo "started $!"
    wait $!
    echo "ended $?"
  done`

/** Keeps the sockets open: the caller may close its own. `args` are those of `postern`. */
export function serviceManager(
  sockets: readonly Handed[],
  args: readonly string[],
  {
    node = process.execPath,
    names = sockets.map(({ name }) => name).join(':'),
  }: { node?: string; names?: string } = {},
): ServiceManager {
  const child = spawn('sh', ['-c', script, 'sh', node, ownLauncher, ...args], {
    stdio: ['pipe', 'pipe', 'pipe', ...sockets.map(({ fd }) => fd)],
    cwd: '/',
    env: { ...withoutSettings(), LISTEN_FDS: String(sockets.length), LISTEN_FDNAMES: names },
  })
  // The types allow only three stdio streams.
  const { stdin, stdout, stderr } = child as unknown as Record<'stdin' | 'stdout' | 'stderr', NodeJS.ReadWriteStream>
  const reported: string[] = []
  createInterface(stdout).on('line', (line) => reported.push(line))
  let printed = ''
  stderr.setEncoding('utf8').on('data', (text: string) => {
    printed += text
  })
  const closed = once(child, 'close')
  let pid = 0
  const next = async (word: string): Promise<number> => {
    const line = await until(`the server has ${word}`, () => reported.find((each) => each.startsWith(word)), {
      limitMs: 60_000,
    })
    reported.splice(reported.indexOf(line), 1)
    return Number(line.slice(word.length))
  }
  return {
    printed: () => printed,
    async start() {
      stdin.write('start\n')
      pid = await next('started ')
      return pid
    },
    ended: () => next('ended '),
    async end() {
      stdin.end()
      if (pid !== 0 && isAlive(pid)) process.kill(pid, 'SIGKILL')
      await closed
    },
  }
}

/** A socket that listens on loopback; `close` closes it in this process once it is passed on. */
export async function openSocket(name: string, port = 0): Promise<Handed & { readonly port: number; close(): void }> {
  const server = createServer()
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address() as { port: number } // as it listens on a port
  return { name, fd: descriptorOf(server), port: address.port, close: () => void server.close() }
}

export function descriptorOf(open: object): number {
  const { _handle: handle } = open as { readonly _handle?: { readonly fd?: number } | null }
  return handle?.fd ?? -1
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

function withoutSettings(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(POSTERN|LISTEN)_/.test(name)))
}
