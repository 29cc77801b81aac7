/** Our own server, as an operator would start it, and what its API says of the tunnels it has. */
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort, freePorts, LOOPBACK, retry } from '../ports.ts'
import type { Program } from '../programs.ts'
import type { Ground } from './contender.ts'

const API_KEY = 'bench_api_key_of_the_first_admin_001'
export const AUTHTOKEN = 'bench_authtoken_of_the_first_admin_1'

const TCP_PORTS = 4

/** How long an agent may take until its tunnel is there, in milliseconds. */
const TUNNEL_MS = 15_000

const launcher = fileURLToPath(new URL('../../../bin/postern.js', import.meta.url))

export interface PosternServer {
  readonly program: Program
  /** Where agents connect, as `host:port`. */
  readonly agentAddress: string
  readonly caFile: string
  readonly httpPort: number
  /** The public URL of the one tunnel that is there, once it is. */
  tunnelUrl(agent: Program): Promise<URL>
}

export async function startPosternServer(ground: Ground): Promise<PosternServer> {
  const { stage } = ground
  const dataDir = join(stage.folder, 'data')
  const ports = {
    api: await freePort(),
    agent: await freePort(),
    http: await freePort(),
    tcp: await freePorts(TCP_PORTS),
  }
  const flags = {
    'data-dir': dataDir,
    'api-listen': `${LOOPBACK}:${ports.api}`,
    'agent-listen': `${LOOPBACK}:${ports.agent}`,
    'http-listen': `${LOOPBACK}:${ports.http}`,
    'https-listen': `${LOOPBACK}:0`,
    'metrics-listen': `${LOOPBACK}:0`,
    'tcp-listen': LOOPBACK,
    'tcp-ports': `${ports.tcp}-${ports.tcp + TCP_PORTS - 1}`,
    'drain-timeout': '1s',
    // No line for every connection or request: the others write none either.
    'log-level': 'warn',
  }
  const args = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value])
  const env = { POSTERN_BOOTSTRAP_API_KEY: API_KEY, POSTERN_BOOTSTRAP_AUTHTOKEN: AUTHTOKEN }
  const program = startPostern(ground, ['serve', ...args], env)
  // The API listens last.
  await program.listens(ports.api)
  return {
    program,
    agentAddress: `localhost:${ports.agent}`,
    caFile: join(dataDir, 'ca.pem'),
    httpPort: ports.http,
    tunnelUrl: (agent) =>
      retry(() => firstTunnel(ports.api), { timeoutMs: TUNNEL_MS, isLost: () => agent.hasEnded() }).catch((cause) => {
        throw new Error(`the agent has no tunnel: ${agent.output().trim()}`, { cause })
      }),
  }
}

/** Runs `postern` with the Node that runs this, and with no settings but the given. */
export function startPostern(
  { stage, nodeOptions }: Ground,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Program {
  const home = { HOME: stage.folder, XDG_CONFIG_HOME: stage.folder, NODE_OPTIONS: nodeOptions }
  return stage.programs.start(process.execPath, [launcher, ...args], { cwd: stage.folder, env: { ...home, ...env } })
}

async function firstTunnel(apiPort: number): Promise<URL> {
  const headers = { authorization: `Bearer ${API_KEY}`, 'service-version': '2' }
  const answer = await fetch(`http://${LOOPBACK}:${apiPort}/tunnels`, { headers })
  const body = await answer.text()
  if (!answer.ok) throw new Error(`GET /tunnels: ${body}`)
  // As the contract says.
  const { tunnels } = JSON.parse(body) as { tunnels: { public_url?: string | null }[] }
  const url = tunnels[0]?.public_url
  if (!url) throw new Error('there is no tunnel yet')
  return new URL(url)
}
