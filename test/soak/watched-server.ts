/** A server in a separate process that reports to its test what it holds: memory, descriptors, and active resources. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { ApiClient } from '../support/api-client.ts'
import { type ServerProcess, serve } from '../support/server-process.ts'
import type { Owner } from '../support/upstream.ts'
import type { Held } from './inside-server.ts'

const API_KEY = 'test_api_key_of_the_first_admin_0001'
const AUTHTOKEN = 'test_authtoken_of_the_first_admin_01'

/** How often descriptors are counted, and the time in between, in milliseconds. */
const LOOKS = 5
const LOOK_MS = 30

/** What a server holds at one moment; descriptors by kind. */
export interface Holdings extends Held {
  /** The part of `rss` that is the program's own: the rest are file pages, which the system can drop and read again. */
  readonly anonymous: number
  readonly descriptors: Readonly<Record<string, number>>
  /** Its TCP connections, for people. */
  readonly connections: readonly string[]
}

export interface WatchedServer {
  readonly server: ServerProcess
  readonly api: ApiClient
  readonly authtoken: string
  readonly ca: string
  /** With `collects`, after a forced collection. */
  holdings(options: { collects: boolean }): Promise<Holdings>
}

export async function startWatched(
  owner: Owner,
  { flags = {} }: { flags?: Readonly<Record<string, string>> } = {},
): Promise<WatchedServer> {
  const dataDir = await mkdtemp(join(tmpdir(), 'postern-soak-'))
  const hook = new URL('./inside-server.ts', import.meta.url).href
  const server = await serve({
    dataDir,
    // Little memory for exchanges, so that it is full before the first measurement.
    flags: { 'log-level': 'error', 'exchange-memory': '1MiB', ...flags },
    env: { POSTERN_BOOTSTRAP_API_KEY: API_KEY, POSTERN_BOOTSTRAP_AUTHTOKEN: AUTHTOKEN },
    nodeFlags: ['--expose-gc', '--import', hook],
    hasChannel: true,
  })
  owner.after(async () => {
    server.kill('SIGKILL')
    await server.ended
    await rm(dataDir, { recursive: true, force: true })
  })
  const { child } = server
  let asked = 0
  const held = (collects: boolean): Promise<Held> =>
    new Promise((resolve, reject) => {
      const id = ++asked
      const onMessage = (answer: { readonly id: number; readonly held: Held }): void => {
        if (answer.id !== id) return
        child.off('message', onMessage).off('exit', onExit)
        resolve(answer.held)
      }
      const onExit = (): void => reject(new Error('the server ended'))
      child.on('message', onMessage).once('exit', onExit)
      child.send({ id, collects })
    })
  return {
    server,
    api: new ApiClient(server.url, API_KEY),
    authtoken: AUTHTOKEN,
    ca: readFileSync(join(dataDir, 'ca.pem'), 'utf8'),
    // Counts several times: each second the server briefly opens a file to see whether it can.
    holdings: async ({ collects }) => {
      const pid = child.pid ?? 0
      const now = { ...(await held(collects)), anonymous: anonymousOf(pid) }
      const looks = [{ resources: now.resources, descriptors: descriptorsOf(pid) }]
      while (looks.length < LOOKS) {
        await setTimeout(LOOK_MS)
        looks.push({ resources: (await held(false)).resources, descriptors: descriptorsOf(pid) })
      }
      const resources = leastOf(looks.map((look) => look.resources))
      const descriptors = leastOf(looks.map((look) => look.descriptors))
      return { ...now, resources, descriptors, connections: connectionsOf(pid) }
    },
  }
}

function anonymousOf(pid: number): number {
  const [, kib] = /^RssAnon:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kib) * 1024
}

function leastOf(looks: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const kinds = new Set(looks.flatMap(Object.keys))
  return Object.fromEntries([...kinds].map((kind) => [kind, Math.min(...looks.map((look) => look[kind] ?? 0))]))
}

/** The open TCP connections, as `local port to remote port, state, bytes that wait to be sent and to be read`. */
function connectionsOf(pid: number): string[] {
  const sockets = new Set<string>()
  for (const name of readdirSync(`/proc/${pid}/fd`)) {
    const [, inode] = /^socket:\[(\d+)\]$/.exec(linkOf(`/proc/${pid}/fd/${name}`)) ?? []
    if (inode !== undefined) sockets.add(inode)
  }
  const rows = ['tcp', 'tcp6'].flatMap((table) => readFileSync(`/proc/net/${table}`, 'utf8').split('\n').slice(1))
  return rows.flatMap((row) => {
    const [, local = '', remote = '', state = '', queues = '', , , , , inode = ''] = row.trim().split(/\s+/)
    if (state === LISTENS || !sockets.has(inode)) return []
    const hex = (text: string | undefined): number => Number.parseInt(text ?? '', 16)
    const [unsent, unread] = queues.split(':')
    const [from, to] = [local, remote].map((address) => hex(address.split(':')[1]))
    return [`${from} to ${to}, state ${state}, ${hex(unsent)} unsent, ${hex(unread)} unread`]
  })
}

/** The state of a listening socket, in the table of the system. */
const LISTENS = '0A'

function descriptorsOf(pid: number): Record<string, number> {
  const kinds: Record<string, number> = {}
  for (const name of readdirSync(`/proc/${pid}/fd`)) {
    const kind = kindOf(`/proc/${pid}/fd/${name}`)
    if (kind !== undefined) kinds[kind] = (kinds[kind] ?? 0) + 1
  }
  return kinds
}

/** `socket`, `pipe`, `anon_inode`, or `file`; undefined if it was closed meanwhile. */
function kindOf(link: string): string | undefined {
  const target = linkOf(link)
  return target === '' ? undefined : (/^(\w+):/.exec(target)?.[1] ?? 'file')
}

/** Empty if it was closed meanwhile. */
function linkOf(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    return ''
  }
}
