/** A server in a process of its own that tells its test what it holds: memory, descriptors, and what keeps it busy. */
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

/** How often descriptors are looked at, and how long apart, in milliseconds. */
const LOOKS = 5
const LOOK_MS = 30

/** What a server holds at one moment; descriptors by their kind. */
export interface Holdings extends Held {
  /** What of `rss` is the program's own: the rest are pages of files, which the system drops and reads again. */
  readonly anonymous: number
  readonly descriptors: Readonly<Record<string, number>>
}

export interface WatchedServer {
  readonly server: ServerProcess
  readonly api: ApiClient
  readonly authtoken: string
  readonly ca: string
  /** `collects`: after a forced collection. */
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
    flags: { 'log-level': 'error', ...flags },
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
    holdings: async ({ collects }) => ({
      ...(await held(collects)),
      anonymous: anonymousOf(child.pid ?? 0),
      descriptors: await heldDescriptors(child.pid ?? 0),
    }),
  }
}

function anonymousOf(pid: number): number {
  const [, kib] = /^RssAnon:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kib) * 1024
}

/** Looks several times: the server opens a file each second to see whether it can, and closes it again. */
async function heldDescriptors(pid: number): Promise<Record<string, number>> {
  const looks = [descriptorsOf(pid)]
  while (looks.length < LOOKS) {
    await setTimeout(LOOK_MS)
    looks.push(descriptorsOf(pid))
  }
  const kinds = new Set(looks.flatMap(Object.keys))
  return Object.fromEntries([...kinds].map((kind) => [kind, Math.min(...looks.map((look) => look[kind] ?? 0))]))
}

function descriptorsOf(pid: number): Record<string, number> {
  const kinds: Record<string, number> = {}
  for (const name of readdirSync(`/proc/${pid}/fd`)) {
    const kind = kindOf(`/proc/${pid}/fd/${name}`)
    if (kind !== undefined) kinds[kind] = (kinds[kind] ?? 0) + 1
  }
  return kinds
}

/** `socket`, `pipe`, `anon_inode`, or `file`; undefined when it was closed meanwhile. */
function kindOf(link: string): string | undefined {
  try {
    return /^(\w+):/.exec(readlinkSync(link))?.[1] ?? 'file'
  } catch {
    return undefined
  }
}
