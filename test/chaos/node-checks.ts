/** Checks for when all nodes are healthy: every address is served, and only its agents hold it. */
import { setTimeout as pause } from 'node:timers/promises'
import { Client } from 'pg'
import type { Json } from '../support/api-client.ts'
import { metric } from '../support/metrics.ts'
import { type Footprint, leftovers } from './footprint.ts'
import { type Address, ask, type Heard, isFrom } from './node-addresses.ts'
import type { NodeAgent } from './node-agents.ts'
import type { WrittenEdge } from './node-edges.ts'
import { BACK_MS } from './nodes-verdict.ts'
import type { NodesWorld, RestartedNode } from './nodes-world.ts'
import { slowMs } from './witness.ts'

/** How long a failed check is watched after its limit, in milliseconds, so that the fault says how late it was. */
const LATE_MS = 40_000

/** Pause between two checks, in milliseconds. */
const LOOK_MS = 200

/** The response that a visitor should get. */
interface Expected {
  readonly what: string
  readonly url: string
  readonly isRight: (heard: Heard) => boolean
}

/** What a node does not serve within the limit after `healed`, and how long the slowest took, in milliseconds. */
export async function servedIn(
  world: NodesWorld,
  given: { readonly agents: readonly NodeAgent[]; readonly edges: readonly WrittenEdge[]; readonly healed: number },
): Promise<{ faults: string[]; slowestMs: number }> {
  const { agents, edges, healed } = given
  const addresses = new Map<string, Address>(agents.map(({ wanted }) => [wanted.address.name, wanted.address]))
  const expected: Expected[] = [...addresses.values()].map(({ name, url }) => ({
    ...{ what: name, url },
    isRight: (heard) => isFrom(heard, name),
  }))
  for (const { host, groups, isThere } of edges) {
    expected.push({
      ...{ what: `${host} (${isThere === 'yes' ? [...groups].join(' or ') : `there: ${isThere}`})` },
      url: `https://${host}`,
      isRight: (heard) => {
        const isOne = [...groups].some((group) => group !== undefined && isFrom(heard, group))
        const isNone = heard.status !== 200
        if (isThere === 'no') return isNone
        return isOne || (isNone && (isThere === 'perhaps' || groups.has(undefined)))
      },
    })
  }
  const waits = world.nodes.flatMap((node) => expected.map((each) => waitFor(world, node, each, healed)))
  const waited = await Promise.all(waits)
  const faults = waited.flatMap(({ fault }) => fault ?? [])
  return { faults, slowestMs: Math.max(0, ...waited.map(({ ms }) => ms)) }
}

async function waitFor(
  { cluster, witness }: NodesWorld,
  node: RestartedNode,
  { what, url, isRight }: Expected,
  healed: number,
): Promise<{ ms: number; fault?: string }> {
  let last: Heard | undefined
  for (;;) {
    const begun = Date.now()
    const heard = await ask(node, url, cluster.ca)
    // On a slow machine the response itself takes longer, so only the start of the request counts.
    const isSlow = slowMs(witness.slow, healed, Date.now()) > 0
    const ms = isSlow ? begun - healed - slowMs(witness.slow, healed, begun) : Date.now() - healed
    const isLate = ms > BACK_MS
    const said = `${last?.status} ${last?.text.replaceAll(/\s+/g, ' ').slice(0, 160)}`
    if (isRight(heard)) return isLate ? { ms, fault: `${what} at ${node.name} only after ${ms} ms: ${said}` } : { ms }
    last = heard
    if (ms > LATE_MS) return { ms, fault: `${what} at ${node.name} not after ${ms} ms: ${heard.status} ${heard.text}` }
    await pause(LOOK_MS)
  }
}

/** Queries the database directly, past all gates. */
async function rows<T extends object>(world: NodesWorld, query: string): Promise<T[]> {
  const client = new Client({ connectionString: world.databaseUrl })
  await client.connect()
  try {
    return (await client.query<T>(query)).rows
  } finally {
    await client.end()
  }
}

/** Addresses whose holders in the database differ from the agents that believe they hold them. */
export async function wronglyHeld(world: NodesWorld, agents: readonly NodeAgent[]): Promise<string[]> {
  return settle(
    world,
    async () => {
      const held = await rows<{ place: string; tunnel_id: string; node_id: string }>(
        world,
        'select place, tunnel_id, node_id from place_holders order by place, tunnel_id',
      )
      const faults: string[] = []
      const believing = agents.filter(({ isOnline, wanted }) => isOnline && wanted.address.form !== 'group')
      for (const [name, some] of Map.groupBy(believing, ({ wanted }) => wanted.address.name)) {
        const isPooled = some[0]?.wanted.address.form === 'pooled'
        if (some.length > 1 && !isPooled) faults.push(`${some.length} agents believe they hold ${name}`)
      }
      for (const { tunnelId, wanted } of believing) {
        const count = held.filter((row) => row.tunnel_id === tunnelId).length
        if (count !== 1) faults.push(`an agent believes it holds ${wanted.address.name}, with ${count} rows for it`)
      }
      const ids = new Set(believing.map(({ tunnelId }) => tunnelId))
      for (const row of held) {
        if (!ids.has(row.tunnel_id))
          faults.push(`${row.place} is held by ${row.tunnel_id}, which no agent believes it has`)
      }
      for (const { isOnline, wanted } of agents)
        if (!isOnline) faults.push(`the agent of ${wanted.address.name} is not online`)
      return faults
    },
    BACK_MS,
  )
}

const TABLES = ['online_sessions', 'online_tunnels', 'online_labels', 'place_holders', 'places'] as const
const LISTS = ['tunnel_sessions', 'tunnels', 'endpoints'] as const
const METRICS = ['postern_streams', 'postern_sessions', 'postern_tunnels', 'postern_edge_connections_open'] as const

/** Slightly longer than the lease of a node, in milliseconds. */
const LEASE_MS = 12_000

/** What agents leave at a node that has stood still is kept for them for 30 s (D56). */
const LEFT_MS = LEASE_MS + 35_000

/** What remains of agents after the last one has gone. */
export async function leftOfAgents(world: NodesWorld, tcpPorts: readonly number[]): Promise<string[]> {
  return settle(
    world,
    async () => {
      const faults: string[] = []
      for (const table of TABLES) {
        const [{ count } = { count: '?' }] = await rows<{ count: string }>(world, `select count(*) from ${table}`)
        if (count !== '0') faults.push(`${count} rows in ${table}`)
      }
      const nodes = (await rows<{ name: string }>(world, 'select name from nodes order by name')).map(
        ({ name }) => name,
      )
      const wanted = world.nodes.map(({ name }) => name)
      if (nodes.join() !== wanted.join()) faults.push(`the nodes are ${nodes.join(', ')}`)
      for (const { name, running } of world.nodes) {
        for (const list of LISTS) {
          const all: Json[] = (await running.api.get(`/${list}`))[list]
          // Edges have endpoints too, and stay.
          const { length } = all.filter(({ type }) => type !== 'edge')
          if (length > 0) faults.push(`${length} in /${list} at ${name}`)
        }
        for (const each of METRICS) {
          const value = await metric(running.server.metricsUrl, each)
          if (value !== 0) faults.push(`${each} is ${value} at ${name}`)
        }
        for (const port of tcpPorts) {
          const heard = await ask({ running }, `tcp://chaos.test:${port}`, world.cluster.ca)
          if (!/ECONNREFUSED/.test(heard.text)) faults.push(`port ${port} is open at ${name}: ${heard.text}`)
        }
      }
      return faults
    },
    LEFT_MS,
  )
}

/** What a node still holds of descriptors, processes and sockets when it has had time to free them. */
export function leftOfNode(
  world: NodesWorld,
  { name }: RestartedNode,
  before: Footprint,
  look: () => Promise<Footprint>,
): Promise<string[]> {
  return settle(
    world,
    async () => leftovers({ before, after: await look() }).map((fault) => `${name}: ${fault}`),
    LEASE_MS,
  )
}

/** Checks until there are no faults; returns those that remain after the limit, in milliseconds. */
async function settle({ witness }: NodesWorld, look: () => Promise<string[]>, limitMs: number): Promise<string[]> {
  const begun = Date.now()
  for (;;) {
    const faults = await look()
    if (faults.length === 0 || witness.since(begun) > limitMs) return faults
    await pause(LOOK_MS)
  }
}
