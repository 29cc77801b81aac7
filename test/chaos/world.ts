/** One server of several processes, as in production, with edges, agents and services, for runs that break it. */
import { closeSync, mkdirSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startAgent } from '../support/agent-process.ts'
import { ApiClient, type Json } from '../support/api-client.ts'
import { tcpRange } from '../support/free-port.ts'
import { type ServerProcess, serve } from '../support/server-process.ts'
import { until } from '../support/until.ts'
import { httpUpstream, type Owner, tcpUpstream } from '../support/upstream.ts'
import { visit } from '../support/visitor.ts'
import { echoMessages } from '../support/websocket.ts'
import { type Children, childrenOf } from './children.ts'
import { type OfficialAgent, startOfficialAgent } from './official-agent.ts'
import { ServerLog } from './server-log.ts'
import type { Places } from './visitors.ts'

export interface WorldOptions {
  readonly workers: number
  /** SQLite if omitted. */
  readonly databaseUrl?: string
  readonly drainMs: number
  /** The path of the `bin/postern.js` to run; this clone's if omitted. */
  readonly launcher?: string
  readonly flags?: Readonly<Record<string, string>>
  readonly env?: Readonly<Record<string, string>>
  /** Flags for Node itself. */
  readonly nodeFlags?: readonly string[]
  /** Called with the data folder before the server starts. */
  readonly prepare?: (dataDir: string) => Promise<void>
  /** Whether to start an official agent too; the default is yes. */
  readonly hasOfficial?: boolean
}

export interface World {
  readonly server: ServerProcess
  /** The pid of the supervisor. */
  readonly supervisor: number
  readonly workers: number
  readonly log: ServerLog
  readonly api: ApiClient
  readonly ca: string
  readonly places: Places
  readonly official?: OfficialAgent
  /** Waits until every process runs. */
  children(): Promise<Children>
  /** Both agents leave. */
  leave(): Promise<void>
  /** Starts a new agent that binds the addresses of both; rejects if it does not get them. */
  bindAgain(): Promise<void>
  /** The files in the server's folder for Unix sockets. */
  unixSockets(): string[]
}

const API_KEY = 'chaos_test_api_key_of_the_first_admin'
const AUTHTOKEN = 'chaos_test_authtoken_of_the_first_user'

/** How many new connections in a row must succeed before an edge counts as served by every worker. */
const SERVED_IN_A_ROW = 30

export async function startWorld(owner: Owner, options: WorldOptions): Promise<World> {
  const { workers, databaseUrl, drainMs, launcher, flags, env, nodeFlags, prepare, hasOfficial = true } = options
  const folder = mkdtempSync(join(tmpdir(), 'chaos-'))
  owner.after(() => rmSync(folder, { recursive: true, force: true }))
  const dataDir = join(folder, 'data')
  const temporary = join(folder, 'tmp')
  for (const path of [dataDir, temporary]) mkdirSync(path, { mode: 0o700 })
  await prepare?.(dataDir)
  const range = await tcpRange(5)
  const logFile = join(folder, 'log')
  const err = openSync(logFile, 'a')
  const server = await serve({
    dataDir,
    ...(databaseUrl !== undefined && { databaseUrl }),
    ...(launcher !== undefined && { launcher }),
    ...(nodeFlags && { nodeFlags }),
    files: { err },
    env: { POSTERN_BOOTSTRAP_API_KEY: API_KEY, POSTERN_BOOTSTRAP_AUTHTOKEN: AUTHTOKEN, TMPDIR: temporary, ...env },
    flags: { workers: String(workers), 'drain-timeout': `${drainMs}ms`, ...range.flags, ...flags },
  }).finally(() => closeSync(err))
  owner.after(async () => {
    server.kill('SIGKILL')
    await server.ended
  })
  const log = new ServerLog(logFile)
  owner.after(() => log.close())
  const supervisor = server.child.pid ?? 0
  const caFile = join(dataDir, 'ca.pem')
  const ca = readFileSync(caFile, 'utf8')
  const api = new ApiClient(server.url, API_KEY)
  const stored = await storedEdges(owner, api, { httpsPort: portOf(server.https), tcpPort: range.ports[4] ?? 0 })
  const agents = await connectAgents(owner, { server, caFile, ca, api, hasOfficial })
  const places = { ca, ...stored, ...agents.endpoints, api: { url: server.url, key: API_KEY } }
  for (const url of [places.edge, places.agent]) await servedEverywhere(url, ca)
  return {
    ...{ server, supervisor, workers, log, api, ca, places },
    ...(agents.official && { official: agents.official }),
    leave: () => agents.leave(),
    bindAgain: () => agents.bindAgain(),
    children: () => until('every process runs', () => childrenOf(supervisor, workers)),
    unixSockets: () =>
      readdirSync(temporary).flatMap((name) => readdirSync(join(temporary, name)).map((file) => join(name, file))),
  }
}

async function storedEdges(owner: Owner, api: ApiClient, at: { httpsPort: number; tcpPort: number }) {
  const web = await httpUpstream(owner, (_, response) => response.end('served'), echoMessages)
  const echo = await tcpUpstream(owner)
  const toWeb = await api.create('/backends/static', { address: web.address })
  const toEcho = await api.create('/backends/static', { address: echo.address })
  const edge = await api.create('/edges/https', { hostports: [`chaos.localhost:${at.httpsPort}`] })
  const route = { match_type: 'path_prefix', match: '/', backend: { backend_id: toWeb.id } }
  await api.create(`/edges/https/${edge.id}/routes`, route)
  await api.create('/edges/tcp', { hostports: [`localhost:${at.tcpPort}`], backend: { backend_id: toEcho.id } })
  return { edge: `https://chaos.localhost:${at.httpsPort}`, tcpEdge: `tcp://localhost:${at.tcpPort}` }
}

async function connectAgents(
  owner: Owner,
  given: { server: ServerProcess; caFile: string; ca: string; api: ApiClient; hasOfficial: boolean },
) {
  const { server, caFile, ca, api, hasOfficial } = given
  const web = await httpUpstream(owner, (_, response) => response.end('served'), echoMessages)
  const echo = await tcpUpstream(owner)
  const to = { server: server.agents, caFile, authtoken: AUTHTOKEN }
  const tunnels = { web: { addr: web.port }, echo: { proto: 'tcp' as const, addr: echo.port } }
  const own = await startAgent(owner, { ...to, tunnels })
  const listed = (count: number) =>
    until(`${count} endpoints`, async () => {
      const all: Json[] = (await api.get('/tunnels')).tunnels
      return all.length === count && all.map(({ public_url }) => String(public_url)).sort()
    })
  const [agent = '', agentTcp = ''] = await listed(2)
  const order = { server: server.agents, ca, authtoken: AUTHTOKEN, addr: `http://${web.address}` }
  const official = hasOfficial ? await startOfficialAgent(owner, order) : undefined
  return {
    endpoints: { agent, agentTcp, ...(official && { official: official.url }) },
    official,
    async leave() {
      own.kill('SIGTERM')
      await own.ended
      await official?.end()
    },
    async bindAgain() {
      const again = {
        web: { addr: web.port, url: agent },
        echo: { proto: 'tcp' as const, addr: echo.port, url: agentTcp },
        ...(official && { other: { addr: web.port, url: official.url } }),
      }
      const next = await startAgent(owner, { ...to, tunnels: again })
      const urls = await listed(Object.keys(again).length).catch((error: unknown) => {
        throw new Error(next.out(), { cause: error })
      })
      for (const url of [agent, agentTcp])
        if (!urls.includes(url)) throw new Error(`${url} is not among ${urls.join(', ')}`)
    },
  }
}

/** Waits until every worker serves an edge, since the API answers a moment earlier. */
async function servedEverywhere(url: string, ca: string): Promise<void> {
  let inARow = 0
  await until(`${url} is served`, async () => {
    const answer = await visit(url, { ca }).catch(() => undefined)
    inARow = answer?.status === 200 ? inARow + 1 : 0
    return inARow >= SERVED_IN_A_ROW
  })
}

/** The port of `host:port`. */
export function portOf(address: string): number {
  return Number(address.slice(address.lastIndexOf(':') + 1))
}
