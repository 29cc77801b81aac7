/** Restarts one node after the other, under load: no visitor of our agents' addresses notices. */
import { type Random, seeded } from '../fuzz/hostile-documents.ts'
import { agentAt, type ClusterNode, startCluster, type TestCluster } from '../support/cluster.ts'
import { Crowd, type Visited } from '../support/crowd.ts'
import { startPostgres } from '../support/postgres.ts'
import { until } from '../support/until.ts'
import { httpUpstream, type Owner, tcpUpstream } from '../support/upstream.ts'
import { dialTcp, visit } from '../support/visitor.ts'

export interface RollingOptions {
  /** Each round restarts every node once. */
  readonly rounds: number
  /** Requests a second, at all running nodes together while one is down. */
  readonly perSecond: number
  /** Decides the order of the nodes. */
  readonly seed: number
  readonly workers: number
  readonly progress: (line: string) => void
}

export interface RollingReport {
  readonly served: number
  readonly seconds: number
  readonly restarts: number
  readonly faults: readonly string[]
}

const COUNT = 3

/** Visitors of each kind at each node: enough to keep up the rate while responses are slow. */
const OF_EACH = 8

/** Longer than any agent takes to move: a node that waits this long is at fault. */
const DRAIN = '2m'

export async function rolling(owner: Owner, options: RollingOptions): Promise<RollingReport> {
  const { rounds, perSecond, seed, workers, progress } = options
  const random = seeded(seed)
  const postgres = await startPostgres()
  owner.after(() => postgres.stop())
  const cluster = await startCluster(owner, {
    databaseUrl: await postgres.createDatabase(),
    flags: { workers: String(workers), 'drain-timeout': DRAIN },
  })
  const nodes: ClusterNode[] = [...cluster.nodes]
  const visited = await serveAll(owner, cluster, nodes)
  const crowdOf = (node: ClusterNode): Crowd =>
    new Crowd(node, visited, { ca: cluster.ca, perSecond: perSecond / (COUNT - 1), ofEach: OF_EACH })
  const crowds = nodes.map(crowdOf)
  const gone: Crowd[] = []
  owner.after(() => Promise.all(crowds.map((crowd) => crowd.stop())))
  const settle = (): Promise<unknown> => Promise.all(crowds.map((crowd) => crowd.goOn()))
  await settle()
  const faults: string[] = []
  const begun = performance.now()
  let restarts = 0
  for (let round = 1; round <= rounds; round++) {
    for (const index of shuffled(nodes.length, random)) {
      const [node, left] = [nodes[index], crowds[index]]
      if (!node || !left) throw new Error(`there is no node ${index}`)
      // A balancer notices that it is not ready, and sends no new visitors.
      const { code } = (await Promise.all([node.server.stop(), left.stop()]))[0]
      gone.push(left)
      if (code !== 0) faults.push(`${node.name} ended with ${code} when it was asked to stop`)
      const again = await cluster.start(index + 1)
      nodes[index] = again
      await until('it is known', async () => (await again.api.get('/nodes')).nodes.length === COUNT)
      crowds[index] = crowdOf(again)
      await settle()
      restarts++
      const all = [...gone, ...crowds]
      const served = all.reduce((sum, crowd) => sum + crowd.served, 0)
      const failed = all.reduce((sum, crowd) => sum + crowd.failed.length, 0)
      progress(`round ${round}: ${node.name} is back; ${served} requests served, ${failed} failed`)
    }
  }
  await Promise.all(crowds.map((crowd) => crowd.stop()))
  const seconds = (performance.now() - begun) / 1000
  const all = [...gone, ...crowds]
  faults.push(...all.flatMap(({ failed }) => failed))
  return { served: all.reduce((sum, crowd) => sum + crowd.served, 0), seconds, restarts, faults }
}

/** Starts agents at all nodes: one with its own addresses, and a pool. */
async function serveAll(owner: Owner, cluster: TestCluster, nodes: readonly ClusterNode[]): Promise<Visited> {
  const service = await httpUpstream(owner, (_, response) => response.end('served'))
  const echo = await tcpUpstream(owner)
  const [first, ...others] = nodes
  if (!first) throw new Error('there are nodes')
  const agent = await agentAt(owner, cluster, first)
  const { url } = await agent.forward({ addr: service.port })
  const { url: tcp } = await agent.forward({ addr: echo.port, proto: 'tcp' })
  const webs = [url]
  for (const node of others) {
    const member = await agentAt(owner, cluster, node)
    const pooled = await member.forward({ addr: service.port, domain: 'pool.cluster.localhost', pooling: true })
    webs[1] = pooled.url
  }
  for (const node of nodes) {
    for (const web of webs) {
      await until('it is served', async () => (await visit(node.at(web), cluster)).status === 200)
    }
    await until('the port is open', () => dialTcp(node.at(tcp)).catch(() => undefined)).then((it) => it.destroy())
  }
  return { webs, tcps: [tcp] }
}

/** The numbers from 0 to `count - 1` in random order. */
function shuffled(count: number, random: Random): number[] {
  const left = Array.from({ length: count }, (_, i) => i)
  return Array.from({ length: count }, () => left.splice(random(left.length), 1)[0] ?? 0)
}
