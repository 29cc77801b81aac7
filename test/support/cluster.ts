/** Several whole nodes on one PostgreSQL, each a separate program with its own loopback address for TCP ports. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe } from 'node:test'
import { type ConnectOptions, connect } from '../../src/agent/library.ts'
import { ApiClient, type Json } from './api-client.ts'
import { eachStore } from './databases.ts'
import { tcpRange } from './free-port.ts'
import { type ServeOptions, type ServerProcess, serve } from './server-process.ts'
import { until } from './until.ts'
import type { Owner } from './upstream.ts'

export const API_KEY = 'cluster_test_api_key_of_the_first_admin'
export const AUTHTOKEN = 'cluster_test_authtoken_of_the_first_user'

export interface ClusterNode {
  readonly name: string
  readonly server: ServerProcess
  readonly api: ApiClient
  /** The address of a name or port at this node. */
  at(url: string): string
}

export interface TestCluster {
  readonly nodes: readonly [ClusterNode, ClusterNode, ClusterNode]
  readonly ca: string
  readonly caFile: string
  readonly databaseUrl: string
  readonly keyFile: string
  /** A port of the nodes for a TCP edge, different with each call. */
  tcpPort(): number
  /** Starts a node again, or another one with that number. */
  start(number: number): Promise<ClusterNode>
}

export interface ClusterOptions {
  readonly databaseUrl: string
  readonly flags?: Readonly<Record<string, string>>
  /** What differs for a node, by its number. */
  readonly ofNode?: (number: number) => Pick<Partial<ServeOptions>, 'databaseUrl' | 'flags' | 'env' | 'files'>
}

/** Names below it resolve to loopback, all of whose addresses are this machine. */
const DOMAIN = 'cluster.localhost'

/** How many ports the nodes have: those of agents, and at the end those that tests choose. */
const TCP_PORTS = 30

/** Defines tests that share three nodes. */
export function onThreeNodes(
  define: (cluster: () => TestCluster) => void,
  options: Pick<ClusterOptions, 'flags'> = {},
): void {
  describe('three nodes', () => {
    eachStore(
      (store) => {
        const closers: (() => unknown)[] = []
        let cluster: TestCluster
        before(async () => {
          const owner = { after: (close: () => unknown) => void closers.unshift(close) }
          cluster = await startCluster(owner, { databaseUrl: await store.url(), ...options })
        })
        after(async () => {
          for (const close of closers) await close()
        })
        define(() => cluster)
      },
      ['postgres'],
    )
  })
}

export async function startCluster(owner: Owner, options: ClusterOptions): Promise<TestCluster> {
  const { databaseUrl } = options
  const folder = mkdtempSync(join(tmpdir(), 'cluster-'))
  owner.after(() => rmSync(folder, { recursive: true, force: true }))
  const keyFile = join(folder, 'secret.key')
  // Other clusters on this machine use the same addresses.
  const range = await tcpRange(TCP_PORTS)
  const chosen = [...range.ports]
  const start = async (number: number): Promise<ClusterNode> => {
    const host = `127.0.0.${10 + number}`
    const name = `node-${number}`
    const own = options.ofNode?.(number) ?? {}
    const server = await serve({
      dataDir: join(folder, `data-${number}`),
      databaseUrl,
      ...own,
      env: { POSTERN_BOOTSTRAP_API_KEY: API_KEY, POSTERN_BOOTSTRAP_AUTHTOKEN: AUTHTOKEN, ...own.env },
      flags: {
        ...{
          'tcp-listen': host,
          domain: DOMAIN,
          node: name,
          region: `r${number}`,
          'key-file': keyFile,
          ...range.flags,
        },
        ...options.flags,
        ...own.flags,
      },
    })
    owner.after(async () => {
      server.kill('SIGKILL')
      await server.ended
    })
    return { name, server, api: new ApiClient(server.url, API_KEY), at: (url) => atNode(url, host, server) }
  }
  // The first starts alone: it creates the key and the schema of the database.
  const first = await start(1)
  const [second, third] = await Promise.all([start(2), start(3)])
  const caFile = join(folder, 'data-1', 'ca.pem')
  const nodes = [first, second, third] as const
  await until('the nodes know each other', async () => (await first.api.get('/nodes')).nodes.length === nodes.length)
  const tcpPort = (): number => chosen.pop() ?? 0
  return { nodes, ca: readFileSync(caFile, 'utf8'), caFile, databaseUrl, keyFile, tcpPort, start }
}

/** Starts our agent at a node. */
export async function agentAt(owner: Owner, cluster: TestCluster, node: ClusterNode, options: ConnectOptions = {}) {
  const agent = await connect({ server: node.server.agents, ca: cluster.caFile, authtoken: AUTHTOKEN, ...options })
  owner.after(() => agent.close())
  return agent
}

export async function listed(node: ClusterNode, kind: 'tunnel_sessions' | 'tunnels' | 'endpoints'): Promise<Json[]> {
  return (await node.api.get(`/${kind}`))[kind]
}

function atNode(url: string, host: string, { https, http }: ServerProcess): string {
  const { protocol, hostname, port, pathname } = new URL(url)
  if (protocol === 'tcp:') return `tcp://${host}:${port}`
  const to = protocol === 'http:' ? http : https
  return `${protocol}//${hostname}:${to.slice(to.indexOf(':') + 1)}${pathname}`
}
