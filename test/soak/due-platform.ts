/** A server with many names that are due at once, an authority that waits for a signal, and callers who measure. */
import { mkdtemp, rm } from 'node:fs/promises'
import { availableParallelism, constants, setPriority, tmpdir } from 'node:os'
import { join } from 'node:path'
import { type AcmeServer, startAcmeServer } from '../support/acme-server.ts'
import { ApiClient } from '../support/api-client.ts'
import { type ServerProcess, serve } from '../support/server-process.ts'
import type { Owner } from '../support/upstream.ts'
import { type Callers, startCallers } from './callers.ts'

/** The names; POSTERN_SOAK_NAMES reduces their number. */
export const dueNames: readonly string[] = Array.from(
  { length: Number(process.env.POSTERN_SOAK_NAMES ?? 10_000) },
  (_, i) => `n${i}.example.com`,
)

export const ORDERS_PER_HOUR = 300

/** How many names one edge has. */
const TOGETHER = 50

const API_KEY = 'soak_test_api_key_of_the_first_admin_01'

export interface DuePlatform {
  readonly acme: AcmeServer
  readonly server: ServerProcess
  readonly api: ApiClient
  readonly callers: Callers
  /** Lets the authority answer from now on. */
  readonly begin: () => void
}

export async function dueFolder(owner: Owner): Promise<string> {
  const dataDir = await mkdtemp(join(tmpdir(), 'postern-due-'))
  owner.after(() => rm(dataDir, { recursive: true, force: true }))
  return dataDir
}

/** Starts a server; afterwards this thread has a low priority, as has whatever it starts. */
export async function startDue(owner: Owner, dataDir: string): Promise<DuePlatform> {
  const acme = await startAcmeServer()
  owner.after(() => acme.stop())
  const begun = Promise.withResolvers<void>()
  acme.mood.before = () => begun.promise
  const { server, api } = await startServer(owner, dataDir, {
    'acme-directory': acme.directory,
    'acme-orders-per-hour': String(ORDERS_PER_HOUR),
  })
  acme.mood.nodes = [{ httpPort: portOf(server.http), httpsPort: portOf(server.https) }]
  const callers = await startCallers({
    apiUrl: server.url,
    apiKey: API_KEY,
    path: '/edges/https?limit=1',
    visited: `http://n0.example.com:${portOf(server.http)}`,
  })
  owner.after(() => callers.stop())
  // A real authority runs elsewhere: it takes no processor time from the server or its callers. On Linux each thread
  // has a priority of its own, and this thread runs the authority.
  setPriority(constants.priority.PRIORITY_LOW)
  return { acme, server, api, callers, begin: begun.resolve }
}

export async function startServer(
  owner: Owner,
  dataDir: string,
  flags: Readonly<Record<string, string>> = {},
): Promise<{ server: ServerProcess; api: ApiClient }> {
  const server = await serve({
    dataDir,
    flags: { workers: String(availableParallelism()), ...flags },
    env: { POSTERN_BOOTSTRAP_API_KEY: API_KEY },
  })
  owner.after(() => server.stop())
  return { server, api: new ApiClient(server.url, API_KEY) }
}

export async function createEdges(api: ApiClient): Promise<void> {
  for (let first = 0; first < dueNames.length; first += TOGETHER) {
    const hostports = dueNames.slice(first, first + TOGETHER).map((name) => `${name}:443`)
    await api.create('/edges/https', { hostports })
  }
}

function portOf(address: string): number {
  return Number(address.slice(address.lastIndexOf(':') + 1))
}
