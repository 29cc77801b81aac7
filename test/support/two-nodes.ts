/** Two whole nodes with workers on one PostgreSQL, an agent of one owner at each, and another owner who asks for their names. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { connect } from '../../src/agent/library.ts'
import { TestAgent } from '../../src/data-plane/tunnel/testing/raw-agent.ts'
import { Secret } from '../../src/lib/secrets/secret.ts'
import { childPids, childrenOf } from '../chaos/children.ts'
import { ApiClient } from './api-client.ts'
import { API_KEY, AUTHTOKEN } from './cluster.ts'
import { type ServerProcess, serve } from './server-process.ts'
import { until } from './until.ts'
import { httpUpstream, type Owner } from './upstream.ts'
import { visit } from './visitor.ts'

export interface StillNode {
  readonly name: string
  readonly server: ServerProcess
  readonly api: ApiClient
  /** Pids of its control process, and of all its processes with the first one first. */
  control(): number
  all(): number[]
}

export interface TwoNodes {
  readonly nodes: readonly [StillNode, StillNode]
  /** PEM. */
  readonly ca: string
  /** The authtoken of the other owner. */
  readonly stranger: string
}

interface TwoNodesOptions {
  readonly databaseUrl: string
  readonly workers: number
}

export async function startTwoNodes(owner: Owner, { databaseUrl, workers }: TwoNodesOptions): Promise<TwoNodes> {
  const folder = mkdtempSync(join(tmpdir(), 'two-nodes-'))
  owner.after(() => rmSync(folder, { recursive: true, force: true }))
  const start = async (number: number): Promise<StillNode> => {
    const name = `node-${number}`
    const server = await serve({
      dataDir: join(folder, name),
      databaseUrl,
      env: { POSTERN_BOOTSTRAP_API_KEY: API_KEY, POSTERN_BOOTSTRAP_AUTHTOKEN: AUTHTOKEN },
      flags: {
        ...{ domain: 'still.localhost', node: name, region: `r${number}`, 'key-file': join(folder, 'secret.key') },
        ...{ 'tcp-listen': `127.0.0.${10 + number}`, workers: String(workers) },
      },
    })
    const supervisor = server.child.pid ?? 0
    const all = (): number[] => [supervisor, ...childPids(supervisor)]
    owner.after(async () => {
      for (const pid of all()) signalTo(pid, 'SIGCONT')
      server.kill('SIGKILL')
      await server.ended
    })
    const control = (): number => childrenOf(supervisor, workers)?.control ?? 0
    return { name, server, api: new ApiClient(server.url, API_KEY), all, control }
  }
  // The first creates the key and the tables.
  const first = await start(1)
  const second = await start(2)
  await until('the nodes know each other', async () => (await first.api.get('/nodes')).nodes.length === 2)
  const bot = await first.api.create('/bot_users', { name: 'another owner' })
  const { token } = await first.api.create('/credentials', { owner_id: bot.id })
  const ca = readFileSync(join(folder, 'node-1', 'ca.pem'), 'utf8')
  return { nodes: [first, second], ca, stranger: token }
}

export function signalTo(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch {
    // The process has already ended.
  }
}

/** An agent of the first owner at a node, with a service behind each of its names that says the name. */
export async function agentWith(owner: Owner, { ca }: TwoNodes, node: StillNode, names: readonly string[]) {
  /** Why names were taken away, and all that the agent was told. */
  const lost: string[] = []
  const events: string[] = []
  const agent = await connect({
    ...{ server: node.server.agents, ca, authtoken: AUTHTOKEN },
    onEvent: (event) => {
      const { type, ...rest } = event
      events.push(`${new Date().toISOString().slice(14, 23)} ${type} ${Object.values(rest).join(' ')}`)
      if (event.type === 'stopped') lost.push(event.reason)
    },
  })
  owner.after(() => agent.close())
  for (const domain of names) {
    const { port } = await httpUpstream(owner, (_, response) => response.end(domain))
    await agent.forward({ addr: port, domain })
  }
  return { agent, names, lost, events }
}

/** Whether visitors of a node reach the service behind a name. */
export async function isServedAt({ server }: StillNode, name: string, { ca }: TwoNodes): Promise<boolean> {
  const url = `https://${name}:${server.https.slice(server.https.lastIndexOf(':') + 1)}/`
  const answer = await Promise.race([visit(url, { ca }).catch(() => undefined), pause(5000, undefined, { ref: false })])
  return answer?.status === 200 && answer.text === name
}

/** Asks a node for a name, on a session of its own: `got`, or the vendor's number of the refusal, or what went wrong. */
export async function askFor({ server }: StillNode, name: string, authtoken: string): Promise<string> {
  const port = Number(server.agents.slice(server.agents.lastIndexOf(':') + 1))
  const agent = new TestAgent({ port, isAlive: true, isTalkative: false })
  try {
    const auth = await agent.authenticate({ authtoken: new Secret(authtoken) })
    if (!('sessionId' in auth)) return `no session: ${JSON.stringify(auth).slice(0, 100)}`
    const bound = await agent.bind({ opts: { Hostname: name } })
    return 'tunnelId' in bound ? 'got' : `refused: ${bound.ngrok ?? bound.message}`
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  } finally {
    agent.mux.close()
  }
}
