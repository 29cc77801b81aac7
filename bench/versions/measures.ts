/** What is compared between two versions: each row puts one kind of load on a server and its agent, and says what it cost. */
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Load } from '../measure.ts'
import { paths } from '../nginx.ts'
import { cpuSeconds, memoryOf, treeOf } from '../stage/proc.ts'
import type { Programs } from '../stage/programs.ts'
import type { Stages } from '../stage/stage.ts'
import { bringAgents } from '../tunnel/idle.ts'
import { runWrk, transferred } from '../wrk.ts'
import { type Side, type Way, ways } from './side.ts'

/** Connections of the rows with requests, and of those that connect anew, to each of the two. */
const CONNECTIONS = 32
const AT_A_TIME = 4

/** Agents that come online in one round. */
const AGENTS = 200

/** How long both are left alone before their memory is read, and after agents have left, in milliseconds. */
const REST_MS = 3000

const GIB = 1024 ** 3
const MIB = 1024 ** 2

const dialAnew = fileURLToPath(new URL('../edge/dial-anew.ts', import.meta.url))

/** What one unit of load costs: CPU seconds, or bytes of memory. */
export type Cost = Readonly<Record<'server' | 'agent' | 'sum', number>>

export interface Tools {
  readonly wrk: string
  readonly seconds: number
  readonly stages: Stages
  readonly programs: Programs
}

export interface Measure {
  readonly name: string
  readonly unit: string
  /** The shown figure is the cost times this. */
  readonly perUnit: number
  /** Only one round for each start, before any load. */
  readonly isOnce?: boolean
  readonly run: (side: Side, tools: Tools) => Promise<Cost>
}

export const measures: readonly Measure[] = [
  { name: 'memory', unit: 'MiB', perUnit: 1 / MIB, isOnce: true, run: atRest },
  ...ways.map((way) => requests(way)),
  ...(['edge', 'tcp'] as const).map((way) => stream(way)),
  { name: 'connections', unit: 'µs each', perUnit: 1e6, run: connections },
  { name: 'binds', unit: 'µs each', perUnit: 1e6, run: binds },
]

function requests(way: Way): Measure {
  const load = ({ entrances }: Side, { wrk, seconds, programs }: Tools): Promise<Load> =>
    runWrk(programs, { wrk, entrance: entrances[way], path: paths.small, connections: CONNECTIONS, seconds })
  return { name: way, unit: 'µs each', perUnit: 1e6, run: (side, tools) => costOf(side, () => load(side, tools)) }
}

/** One visitor who downloads a large file. */
function stream(way: Way): Measure {
  const load = ({ entrances }: Side, { wrk, seconds, programs }: Tools): Promise<Load> =>
    transferred(programs, { wrk, entrance: entrances[way], path: paths.endless, seconds })
  const run = (side: Side, tools: Tools): Promise<Cost> => costOf(side, () => load(side, tools))
  return { name: `${way}-stream`, unit: 'ms a GiB', perUnit: GIB * 1000, run }
}

/** New TLS connections to the edge without a tunnel, with one request each. */
function connections(side: Side, { seconds, programs }: Tools): Promise<Cost> {
  const { port, tls } = side.entrances.edge
  const args = [seconds, AT_A_TIME, port, paths.small, 'X25519', side.server.caFile, tls?.name ?? ''].map(String)
  return costOf(side, async () => {
    const printed = await programs.run(process.execPath, [dialAnew, ...args], { timeoutMs: (seconds + 20) * 1000 })
    return JSON.parse(printed) as Load // it prints it in this form
  })
}

/** Agents that come online, each with a session and an HTTP endpoint of its own; they leave afterwards. */
async function binds(side: Side, { stages }: Tools): Promise<Cost> {
  const crowd = stages.open('agents')
  try {
    return await costOf(side, async () => {
      await bringAgents(crowd, side.server, AGENTS)
      return { amount: AGENTS, seconds: Number.NaN }
    })
  } finally {
    await crowd.close()
    await pause(REST_MS)
  }
}

/** Memory of both at rest; pages that processes share count in part. */
async function atRest({ pids }: Side): Promise<Cost> {
  await pause(REST_MS)
  const share = (root: number): number => treeOf([root]).reduce((sum, { pid }) => sum + memoryOf(pid).share, 0)
  const [server, agent] = [share(pids.server), share(pids.agent)]
  return { server, agent, sum: server + agent }
}

async function costOf({ pids }: Side, load: () => Promise<Load>): Promise<Cost> {
  const cpu = (): [number, number] => [cpuSeconds([pids.server]), cpuSeconds([pids.agent])]
  const before = cpu()
  const { amount } = await load()
  const after = cpu()
  const [server, agent] = [(after[0] - before[0]) / amount, (after[1] - before[1]) / amount]
  return { server, agent, sum: server + agent }
}
