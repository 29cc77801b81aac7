/** Three nodes with different clocks, and gates between them, the database and agents. */
import { type ClusterNode, type ClusterOptions, startCluster, type TestCluster } from './cluster.ts'
import { portToKeep } from './free-port.ts'
import { openGate, type TcpGate } from './tcp-gate.ts'
import type { Owner } from './upstream.ts'

/** The gates of a node. */
export interface Gates {
  /** Between the node and the database. */
  readonly database: TcpGate
  /** Between other nodes and the node. */
  readonly others: TcpGate
  /** Between agents and the node, for agents that a test connects through it. */
  readonly agents: TcpGate
}

export interface GatedNode extends ClusterNode {
  readonly gates: Gates
  /** The address at which agents connect through the gate. */
  readonly agentsGate: string
}

export interface GatedCluster extends Omit<TestCluster, 'nodes'> {
  readonly nodes: readonly [GatedNode, GatedNode, GatedNode]
}

export interface GatedClusterOptions extends Pick<ClusterOptions, 'databaseUrl'> {
  /** How far the clock of each node is ahead, in milliseconds. */
  readonly clocks?: readonly [number, number, number]
}

export async function startGatedCluster(
  owner: Owner,
  { databaseUrl, clocks = [0, 0, 0] }: GatedClusterOptions,
): Promise<GatedCluster> {
  const ways = await Promise.all(clocks.map((aheadMs) => openWays(owner, databaseUrl, aheadMs)))
  const wayOf = (number: number) => ways[number - 1] as (typeof ways)[number] // one for each node
  const cluster = await startCluster(owner, { databaseUrl, ofNode: (number) => wayOf(number).run })
  const gated = async (node: ClusterNode, number: number): Promise<GatedNode> => {
    const agents = await opened(owner, portOf(node.server.agents))
    return { ...node, gates: { ...wayOf(number).gates, agents }, agentsGate: `127.0.0.1:${agents.port}` }
  }
  const [first, second, third] = cluster.nodes
  return { ...cluster, nodes: [await gated(first, 1), await gated(second, 2), await gated(third, 3)] }
}

async function openWays(owner: Owner, databaseUrl: string, aheadMs: number) {
  const url = new URL(databaseUrl)
  const database = await opened(owner, Number(url.port))
  url.port = String(database.port)
  const port = await portToKeep()
  const others = await opened(owner, port)
  const run = {
    databaseUrl: url.href,
    flags: { 'cluster-listen': `127.0.0.1:${port}`, 'cluster-address': `127.0.0.1:${others.port}` },
    // The processes that the server starts get the same environment.
    env: { NODE_OPTIONS: `--import=${movedClock}`, POSTERNTEST_CLOCK_MS: String(aheadMs) },
  }
  return { run, gates: { database, others } }
}

const movedClock = new URL('moved-clock.ts', import.meta.url).href

async function opened(owner: Owner, target: number): Promise<TcpGate> {
  const gate = await openGate(target)
  owner.after(() => gate.shut())
  return gate
}

function portOf(address: string): number {
  return Number(address.slice(address.lastIndexOf(':') + 1))
}
