/** Kills, freezes, stops and cuts off nodes and their database at random, under load, and checks the invariants. */
import { setTimeout as pause } from 'node:timers/promises'
import { type Random, seeded } from '../fuzz/hostile-documents.ts'
import { until } from '../support/until.ts'
import type { Owner } from '../support/upstream.ts'
import { childrenOf } from './children.ts'
import { type Footprint, footprint } from './footprint.ts'
import type { Address } from './node-addresses.ts'
import { NodeAgents, type Wanted } from './node-agents.ts'
import { leftOfAgents, leftOfNode, servedIn, wronglyHeld } from './node-checks.ts'
import { EdgeWriter, type Group, misread } from './node-edges.ts'
import { type PlannedFault, planFaults, strike } from './node-faults.ts'
import { NodeVisitors } from './node-visitors.ts'
import { type FaultSpan, judgeAsks, lastFaults, time } from './nodes-verdict.ts'
import { type NodesWorld, type RestartedNode, startNodesWorld } from './nodes-world.ts'
import { slowMs } from './witness.ts'

export interface NodesOptions {
  /** For how long new faults are started, in milliseconds. */
  readonly forMs: number
  readonly seed: number
  readonly workers: number
  /** Folder where logs of the nodes are kept. */
  readonly logs?: string | undefined
  readonly progress: (line: string) => void
  /** Replaces the faults that the seed would give: rounds of faults, one after the other. */
  readonly rounds?: readonly (readonly PlannedFault[])[]
}

/** The invariants, by their names in the report. */
export const invariants = {
  written: 'no acknowledged write is lost',
  held: 'no address is held twice',
  served: 'every address of a live agent is served at every node within 5 s',
  left: 'nothing is left over',
  pooled: 'a pooled address loses only what was in flight at a node that was killed, frozen or cut off',
  answers: 'no service answers for another address',
  others: 'any other address is served while its agent is live and in reach',
} as const

export type Invariant = keyof typeof invariants

export interface NodesReport {
  readonly seed: number
  readonly visits: number
  readonly spans: readonly FaultSpan[]
  readonly excused: Readonly<Record<string, number>>
  readonly agents: { readonly came: number; readonly refused: number }
  readonly writes: { readonly acknowledged: number; readonly unknown: number }
  /** How long the machine was too slow to meet any limit, in milliseconds. */
  readonly slowMs: number
  /** How long after faults the slowest address was served again, for each calm, in milliseconds. */
  readonly backMs: readonly number[]
  readonly broken: Readonly<Record<Invariant, readonly string[]>>
  readonly faults: readonly string[]
}

/** As long as the longest fault, which a request may have to wait for. */
const DRAIN_MS = 15_000

/** Pause between two rounds of faults, in milliseconds. */
const BETWEEN_MS = 1500

/** After this many rounds, everything is left to recover. */
const CALM_EVERY = 3

/** How many faults of one kind are reported one by one. */
const MAX_FAULTS = 10

type Broken = Record<Invariant, string[]>

export async function nodes(owner: Owner, options: NodesOptions): Promise<NodesReport> {
  const { forMs, seed, workers, logs, progress, rounds } = options
  const streams = (purpose: number): Random => seeded(seed * 16 + purpose)
  const world = await startNodesWorld(owner, { workers, drainMs: DRAIN_MS, logs })
  const before = new Map<RestartedNode, Footprint>()
  for (const node of world.nodes) before.set(node, await footprintOf(node, workers))
  const population = await populate(owner, world)
  const { agents, addresses, groups, guests } = population
  const writer = new EdgeWriter(world, groups, streams(1))
  const visitors = new NodeVisitors(world, addresses, streams(2))
  const broken: Broken = { written: [], held: [], served: [], left: [], pooled: [], answers: [], others: [] }
  const spans: FaultSpan[] = []
  const backMs: number[] = []
  /** Checks everything while no fault is active and nothing changes. */
  const calm = async (healed: number): Promise<void> => {
    await Promise.all([agents.rest(), writer.rest()])
    const around = (fault: string): string => `${time(healed)} ${fault}; ${lastFaults(healed, { faults: spans })}`
    const { live } = agents
    const { faults, slowestMs } = await servedIn(world, { agents: live, edges: writer.edges, healed })
    backMs.push(slowestMs)
    broken.served.push(...faults.map(around))
    broken.held.push(...(await wronglyHeld(world, live)).map(around))
    for (const node of world.nodes) broken.written.push(...(await misread(node, writer.edges)).map(around))
    progress(
      `${time(Date.now())} all is served after ${slowestMs} ms; ${visitors.done} visits, ${faults.length} faults`,
    )
  }
  const stir = (): void => {
    agents.stir(guests, streams(3))
    writer.stir()
  }

  const random = streams(4)
  await calm(Date.now())
  stir()
  const end = Date.now() + forMs
  const isOver = (round: number): boolean => (rounds ? round > rounds.length : Date.now() >= end)
  for (let round = 1; !isOver(round); round++) {
    const planned = rounds?.[round - 1] ?? planFaults(random, world.nodes.length)
    for (const { kind, node, lastsMs } of planned) {
      progress(`${time(Date.now())} round ${round}: ${kind} of node-${node + 1}, for ${(lastsMs / 1000).toFixed(1)} s`)
    }
    spans.push(...(await Promise.all(planned.map((each) => strike(world, each)))))
    if (round % CALM_EVERY === 0 && !isOver(round + 1)) {
      await calm(Date.now())
      stir()
    } else await pause(random(BETWEEN_MS))
  }
  await calm(Date.now())
  await visitors.stop()
  const verdict = judgeAsks(visitors.failed, { faults: spans, agents: agents.spans, slow: world.witness.slow })
  broken.pooled.push(...verdict.pooled)
  broken.answers.push(...verdict.strange)
  broken.others.push(...verdict.others)
  broken.written.push(...writer.faults)

  await agents.close()
  broken.left.push(...(await leftOfAgents(world, population.tcpPorts)))
  for (const [node, was] of before) {
    broken.left.push(...(await leftOfNode(world, node, was, () => footprintOf(node, workers))))
  }
  const faults = Object.entries(broken).flatMap(([key, all]) => {
    const more = all.length - MAX_FAULTS
    const some = [...all.slice(0, MAX_FAULTS), ...(more > 0 ? [`and ${more} more`] : [])]
    return some.map((fault) => `${invariants[key as Invariant]}: ${fault}`) // its keys are its type
  })
  return {
    ...{ seed, visits: visitors.done, spans, excused: verdict.excused, backMs, broken, faults },
    ...{ agents: agents.figures, writes: writer.figures, slowMs: slowMs(world.witness.slow, 0, Date.now()) },
  }
}

/** Without workers, a node is a single process. */
async function footprintOf(node: RestartedNode, workers: number): Promise<Footprint> {
  const pid = node.running.server.child.pid ?? 0
  const unixSockets = (): string[] => []
  if (workers === 0) return footprint({ supervisor: 0, unixSockets }, { control: 0, workers: [pid] })
  const children = await until('every process runs', () => childrenOf(pid, workers))
  return footprint({ supervisor: pid, unixSockets }, children)
}

/** Starts the agents that are there from the beginning, and lists those that may come. */
async function populate(owner: Owner, world: NodesWorld) {
  const agents = new NodeAgents(owner, world)
  const tcpPorts: number[] = []
  const web = (name: string, form: Address['form'] = 'alone'): Wanted => {
    const domain = `${name}.chaos.test`
    const options = { domain, ...(form === 'pooled' && { pooling: true }) }
    return { address: { name, form, url: `https://${domain}` }, options }
  }
  const tcp = (name: string, form: Address['form'] = 'alone'): Wanted => {
    const port = world.cluster.tcpPort()
    tcpPorts.push(port)
    const url = `tcp://tcp.chaos.test:${port}`
    const pooling = form === 'pooled' && { pooling: true }
    return {
      address: { name, form, url },
      options: { proto: 'tcp', remote_addr: `tcp.chaos.test:${port}`, ...pooling },
    }
  }
  const group = (name: string): Wanted => ({
    address: { name, form: 'group', url: `https://${name}.chaos.test` },
    options: { labels: { app: name } },
  })
  const [pair, trio, port] = [web('pair', 'pooled'), web('trio', 'pooled'), tcp('port-pair', 'pooled')]
  const [shop, red, blue] = [group('shop'), group('red'), group('blue')]
  const stays: readonly (readonly [Wanted, ...number[]])[] = [
    [pair, 0, 1],
    [trio, 1, 2],
    [port, 0, 2],
    [shop, 1, 2],
    [red, 0],
    [blue, 2],
    [web('first'), 0],
    [web('second'), 1],
    [web('third'), 2],
    [tcp('port'), 1],
  ]
  const crown = web('crown')
  const guests = [[trio], [shop], [web('guest-1'), web('guest-2')], [tcp('port-1'), tcp('port-2')], [crown], [crown]]
  const groups = await Promise.all([shop, red, blue].map((each) => storeGroup(world, each)))
  for (const [wanted, ...at] of stays) for (const node of at) await agents.come(wanted, node)
  const addresses = new Set([...stays.map(([{ address }]) => address), ...guests.flat().map(({ address }) => address)])
  return { agents, addresses: [...addresses], groups, guests, tcpPorts }
}

/** Stores a tunnel group, selected by labels, and an edge in front of it. */
async function storeGroup({ nodes }: NodesWorld, { address, options }: Wanted): Promise<Group> {
  const api = nodes[0]?.running.api
  if (!api) throw new Error('there are nodes')
  const backend = await api.create('/backends/tunnel_group', { labels: options.labels })
  const edge = await api.create('/edges/https', { hostports: [`${address.name}.chaos.test:443`] })
  const route = { match_type: 'path_prefix', match: '/', backend: { backend_id: backend.id } }
  await api.create(`/edges/https/${edge.id}/routes`, route)
  return { name: address.name, backendId: backend.id }
}
