/** Starts our own server and agent as an operator would, with a client of the server's API. */
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { ApiClient } from '../test/support/api-client.ts'
import { freePort, freePorts, LOOPBACK, retry } from './stage/ports.ts'
import type { Program } from './stage/programs.ts'
import type { Stage } from './stage/stage.ts'

const API_KEY = 'bench_api_key_of_the_first_admin_001'
export const AUTHTOKEN = 'bench_authtoken_of_the_first_admin_1'

const TCP_PORTS = 4

/** How long an agent may take until its tunnel is online, in milliseconds. */
const TUNNEL_MS = 15_000

/** How long a server with many edges may take to be ready, in milliseconds. */
const READY_MS = 120_000

/** The root folder of this version. */
const here = fileURLToPath(new URL('..', import.meta.url))

export interface Place {
  readonly stage: Stage
  /** Options for Node in our own server and agent, such as `--cpu-prof`. */
  readonly nodeOptions: string
  /** Further variables for both. */
  readonly env?: Readonly<Record<string, string>>
  /** The root folder of another version of Postern; by default this one. */
  readonly root?: string
  /** The Node executable; by default the one that runs this. */
  readonly node?: string
}

export interface ServerOptions {
  /** A folder with existing data; by default a new one. */
  readonly dataDir?: string
  /** Processes that serve visitors and agents; by default one process does everything. */
  readonly workers?: number
  readonly logLevel?: 'warn' | 'debug'
  readonly onLine?: (line: string) => void
  /** Further settings, without dashes. */
  readonly flags?: Readonly<Record<string, string>>
}

export interface PosternServer {
  readonly program: Program
  /** Uses the key of the first admin. */
  readonly api: ApiClient
  readonly apiPort: number
  readonly agentPort: number
  /** Where agents connect, as `host:port`. */
  readonly agentAddress: string
  readonly caFile: string
  readonly sshPort: number
  readonly httpPort: number
  readonly httpsPort: number
}

/** Starts a server without waiting until it is ready. */
export async function launchPosternServer(
  place: Place,
  {
    dataDir = join(place.stage.folder, 'data'),
    workers = 0,
    logLevel = 'warn',
    onLine,
    flags: more,
  }: ServerOptions = {},
): Promise<PosternServer> {
  const ports = {
    api: await freePort(),
    agent: await freePort(),
    ssh: await freePort(),
    http: await freePort(),
    https: await freePort(),
    tcp: await freePorts(TCP_PORTS),
  }
  const flags = {
    'data-dir': dataDir,
    'api-listen': `${LOOPBACK}:${ports.api}`,
    'agent-listen': `${LOOPBACK}:${ports.agent}`,
    // Older versions refuse to start with settings that they do not know.
    ...(hasRoom(place, 'ssh', 'data-plane/ssh') && { 'ssh-listen': `${LOOPBACK}:${ports.ssh}` }),
    ...(hasRoom(place, 'supervisor', 'server/supervisor') && { workers: String(workers) }),
    'http-listen': `${LOOPBACK}:${ports.http}`,
    'https-listen': `${LOOPBACK}:${ports.https}`,
    'metrics-listen': `${LOOPBACK}:0`,
    'tcp-listen': LOOPBACK,
    'tcp-ports': `${ports.tcp}-${ports.tcp + TCP_PORTS - 1}`,
    'drain-timeout': '1s',
    // At `warn` there is no line for each connection or request; the other programs write none either.
    'log-level': logLevel,
    'log-format': 'json',
    ...more,
  }
  const args = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value])
  const env = {
    POSTERN_BOOTSTRAP_API_KEY: API_KEY,
    POSTERN_BOOTSTRAP_AUTHTOKEN: AUTHTOKEN,
  }
  return {
    program: startPostern(place, ['serve', ...args], { env, ...(onLine && { onLine }) }),
    api: new ApiClient(`http://${LOOPBACK}:${ports.api}`, API_KEY),
    apiPort: ports.api,
    agentPort: ports.agent,
    agentAddress: `localhost:${ports.agent}`,
    caFile: join(dataDir, 'ca.pem'),
    sshPort: ports.ssh,
    httpPort: ports.http,
    httpsPort: ports.https,
  }
}

/** Whether the version has one of these folders, in its sources or in its build. */
function hasRoom({ root = here }: Place, ...folders: readonly string[]): boolean {
  return ['src', 'dist'].some((code) => folders.some((folder) => existsSync(join(root, code, folder))))
}

/** Starts a server; resolves once it is ready. */
export async function startPosternServer(place: Place, options?: ServerOptions): Promise<PosternServer> {
  const server = await launchPosternServer(place, options)
  // The server listens before its first admin exists.
  await server.program.listens(server.apiPort, { timeoutMs: READY_MS })
  await retry(() => isReady(server, READY_MS), { timeoutMs: READY_MS, isLost: () => server.program.hasEnded() })
  return server
}

/** Does an agent's TLS handshake: a busy server may leave an accepted connection waiting, but not after a handshake. */
export async function greetAsAgent({ agentPort, caFile }: PosternServer, limitMs: number): Promise<void> {
  const ca = readFileSync(caFile)
  const socket = connect({ host: LOOPBACK, port: agentPort, servername: 'localhost', ca })
  try {
    await once(socket, 'secureConnect', { signal: AbortSignal.timeout(limitMs) })
  } finally {
    socket.destroy()
  }
}

/** Rejects unless the server reports that it is ready. */
export async function isReady({ apiPort }: PosternServer, limitMs: number): Promise<void> {
  const answer = await fetch(`http://${LOOPBACK}:${apiPort}/readyz`, { signal: AbortSignal.timeout(limitMs) })
  if (!answer.ok) throw new Error(`/readyz answered ${answer.status}`)
}

/** Starts an agent with the given command; resolves with the first tunnel of the server, once there is one. */
export async function startAgent(
  place: Place,
  server: PosternServer,
  command: readonly string[],
): Promise<{ agent: Program; publicUrl: string }> {
  const { agentAddress, caFile } = server
  const to = ['--server', agentAddress, '--ca', caFile]
  const agent = startPostern(place, [...command, ...to], { env: { POSTERN_AUTHTOKEN: AUTHTOKEN } })
  return { agent, publicUrl: await awaitTunnel(server, agent) }
}

/** Waits for the server's first tunnel; resolves with its address. */
export async function awaitTunnel({ api }: PosternServer, agent: Program): Promise<string> {
  const tunnel = async (): Promise<string> => {
    // The form of the contract; only tunnels with their own address have a URL.
    const { tunnels } = (await api.get('/tunnels')) as { tunnels: { public_url?: string | null }[] }
    if (!tunnels[0]) throw new Error('there is no tunnel yet')
    return tunnels[0].public_url ?? ''
  }
  try {
    const isLost = (): boolean => agent.hasEnded()
    return await retry(tunnel, { timeoutMs: TUNNEL_MS, isLost })
  } catch (cause) {
    throw new Error(`the agent has no tunnel: ${agent.output().trim()}`, { cause })
  }
}

/** Runs `postern` only with the given settings. */
function startPostern(
  { stage, nodeOptions, env: around, root = here, node = process.execPath }: Place,
  args: readonly string[],
  { env, onLine }: { env: Readonly<Record<string, string>>; onLine?: (line: string) => void },
): Program {
  const home = { HOME: stage.folder, XDG_CONFIG_HOME: stage.folder, NODE_OPTIONS: nodeOptions }
  return stage.programs.start(node, [join(root, 'bin', 'postern.js'), ...args], {
    cwd: stage.folder,
    env: { ...home, ...around, ...env },
    ...(onLine && { onLine }),
  })
}
