/** Stops and upgrades nodes whose control process stands still meanwhile, under load: no visitor notices. */
import { setTimeout as pause } from 'node:timers/promises'
import { agentAt, type ClusterNode, startCluster, type TestCluster } from '../support/cluster.ts'
import { Crowd } from '../support/crowd.ts'
import { startPostgres } from '../support/postgres.ts'
import { until } from '../support/until.ts'
import { httpUpstream, type Owner, tcpUpstream } from '../support/upstream.ts'
import { answerOf, beginVisit, dialTcp, visit } from '../support/visitor.ts'
import { controlsOf } from './children.ts'

export interface StopsOptions {
  /** In each round both nodes are stopped in turn and started again, and one of them is upgraded. */
  readonly rounds: number
  /** The minimum number of requests. */
  readonly requests: number
  /** Requests a second, at all running nodes together. */
  readonly perSecond: number
  readonly workers: number
  /** For how long control processes stand still, instead of the times below; with 0 they do not. */
  readonly seconds?: number | undefined
  readonly progress: (line: string) => void
}

export interface StopsReport {
  readonly served: number
  readonly stops: number
  readonly upgrades: number
  /** Requests that were made again during upgrades, whose visitors go on with kept connections. */
  readonly repeated: number
  readonly faults: readonly string[]
}

/** For how long a control process stands still when its node is stopped, in milliseconds, by round. */
const STOPPED_MS = [10_000, 2100, 5000]

/** The same after an upgrade: new workers look up names at other nodes, and visitors wait for that. */
const UPGRADED_MS = 3000

/** How long an upgrade may take on a busy machine, in milliseconds. */
const UPGRADE_MS = 300_000

/** Longer than any agent takes to move: a node that waits this long is at fault. */
const DRAIN = '2m'

/** A balancer notices in this time that a node is not ready, and sends no new visitors there. */
const DELAY = '1s'

/** How long an answer takes that is under way at the moment of a stop, in milliseconds. */
const LONG_MS = 4000

export async function stops(owner: Owner, options: StopsOptions): Promise<StopsReport> {
  const { rounds, requests, perSecond, workers, seconds, progress } = options
  const postgres = await startPostgres()
  owner.after(() => postgres.stop())
  const cluster = await startCluster(owner, {
    databaseUrl: await postgres.createDatabase(),
    flags: { workers: String(workers), 'drain-timeout': DRAIN, 'stop-delay': DELAY },
  })
  const [first, second, third] = cluster.nodes
  await third.server.stop()
  const nodes: [ClusterNode, ClusterNode] = [first, second]
  const visited = await serveAll(owner, cluster, nodes)
  const all: Crowd[] = []
  let isUpgrading = false
  const mayRepeat = (): boolean => isUpgrading
  const crowdAt = (node: ClusterNode): Crowd => {
    const crowd = new Crowd(node, visited, { ca: cluster.ca, perSecond: perSecond / 2, ofEach: 2, mayRepeat })
    owner.after(() => crowd.stop())
    all.push(crowd)
    return crowd
  }
  const crowds: [Crowd, Crowd] = [crowdAt(nodes[0]), crowdAt(nodes[1])]
  const settle = (): Promise<unknown> => Promise.all(crowds.map((crowd) => crowd.goOn()))
  const served = (): number => all.reduce((sum, crowd) => sum + crowd.served, 0)
  const faults: string[] = []
  let shown = 0
  const done = (what: string): void => {
    const failed = [...faults, ...all.flatMap((crowd) => crowd.failed)]
    progress([`${what}; ${served()} requests served, ${failed.length} failed`, ...failed.slice(shown)].join('\n  '))
    shown = failed.length
  }
  /** Answers that take long, through both nodes. */
  const long = (): Promise<unknown> =>
    Promise.all(
      nodes.map(async (node) => {
        const url = node.at(visited.webs[0] ?? '')
        const { text } = await answerOf(beginVisit(url, cluster, { path: '/long' }))
        if (text !== 'begun and finished') faults.push(`a long answer through ${node.name} was cut: ${text}`)
      }),
    ).catch((error: Error) => void faults.push(`a long answer: ${error.message}`))
  await settle()
  let stopped = 0
  let upgrades = 0
  for (let round = 1; round <= rounds; round++) {
    const standsMs = seconds === undefined ? (STOPPED_MS[(round - 1) % STOPPED_MS.length] ?? 0) : seconds * 1000
    for (const index of [0, 1] as const) {
      const node = nodes[index]
      const answers = long()
      await settle()
      const thaw = freeze(node)
      const stop = node.server.stop()
      const left = crowds[index].stop()
      await pause(standsMs)
      thaw()
      await Promise.all([left, answers])
      const { code } = await stop
      if (code !== 0) faults.push(`${node.name} ended with ${code} when it was asked to stop`)
      nodes[index] = await cluster.start(index + 1)
      await until('it is known', async () => (await nodes[index].api.get('/nodes')).nodes.length === nodes.length)
      for (const web of visited.webs) await until('it is served', () => isServed(nodes[index], web, cluster))
      crowds[index] = crowdAt(nodes[index])
      await settle()
      stopped++
      done(`round ${round}: ${node.name} was stopped while its control process stood still for ${standsMs} ms`)
    }
    const node = nodes[round % 2 === 0 ? 0 : 1]
    const answers = long()
    isUpgrading = true
    await upgradeFrozen(node, seconds === undefined ? UPGRADED_MS : seconds * 1000)
    await answers
    await settle()
    isUpgrading = false
    upgrades++
    done(`round ${round}: ${node.name} was upgraded`)
    const due = (requests * round) / rounds
    while (served() < due && all.every(({ failed }) => failed.length === 0)) await pause(100)
  }
  await Promise.all(crowds.map((crowd) => crowd.stop()))
  faults.push(...all.flatMap(({ failed }) => failed))
  const repeated = all.reduce((sum, crowd) => sum + crowd.repeated, 0)
  return { served: served(), stops: stopped, upgrades, repeated, faults }
}

/** Upgrades a node whose new control process stands still as soon as the old workers drain. */
async function upgradeFrozen(node: ClusterNode, standsMs: number): Promise<void> {
  const from = node.server.log().length
  const says = (text: string) => until(text, () => node.server.log().includes(text, from), { limitMs: UPGRADE_MS })
  node.server.kill('SIGUSR2')
  await says('upgrade done')
  const thaw = freeze(node)
  await pause(standsMs)
  thaw()
  await says('before the upgrade have ended')
}

/** Stops the control processes of a node; returns what continues them. */
function freeze(node: ClusterNode): () => void {
  const pids = controlsOf(node.server.child.pid ?? 0)
  for (const pid of pids) process.kill(pid, 'SIGSTOP')
  return () => {
    // The supervisor may have ended it meanwhile.
    for (const pid of controlsOf(node.server.child.pid ?? 0)) if (pids.includes(pid)) process.kill(pid, 'SIGCONT')
  }
}

/** Starts agents at both nodes: one with its own addresses at each, and a pool. */
async function serveAll(owner: Owner, cluster: TestCluster, nodes: readonly ClusterNode[]) {
  const service = await httpUpstream(owner, ({ url }, response) => {
    if (url !== '/long') return response.end('served')
    response.write('begun ')
    setTimeout(() => response.end('and finished'), LONG_MS)
  })
  const echo = await tcpUpstream(owner)
  const webs: string[] = []
  const tcps: string[] = []
  for (const node of nodes) {
    const agent = await agentAt(owner, cluster, node)
    webs.push((await agent.forward({ addr: service.port })).url)
    tcps.push((await agent.forward({ addr: echo.port, proto: 'tcp' })).url)
    const member = await agentAt(owner, cluster, node)
    await member.forward({ addr: service.port, domain: 'pool.cluster.localhost', pooling: true })
  }
  webs.push('https://pool.cluster.localhost')
  for (const node of nodes) {
    for (const web of webs) await until('it is served', () => isServed(node, web, cluster))
    for (const tcp of tcps) {
      await until('the port is open', () => dialTcp(node.at(tcp)).catch(() => undefined)).then((it) => it.destroy())
    }
  }
  return { webs, tcps }
}

async function isServed(node: ClusterNode, web: string, cluster: TestCluster): Promise<boolean> {
  return (await visit(node.at(web), cluster)).status === 200
}
