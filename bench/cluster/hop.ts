/** What the hop to another node costs: the same load through the agent's own node and through the other. */
import { readFile } from 'node:fs/promises'
import type { Bar, EdgeLane } from '../edge/compare.ts'
import { awaitAnswer, type Entrance } from '../entrance.ts'
import { type Load, median } from '../measure.ts'
import { paths, SMALL_BYTES, startUpstream } from '../nginx.ts'
import { startAgent } from '../postern.ts'
import { requests, type Unit } from '../result.ts'
import { freePort, LOOPBACK } from '../stage/ports.ts'
import { cpuSeconds } from '../stage/proc.ts'
import { findProgram } from '../stage/programs.ts'
import type { Stage, Stages } from '../stage/stage.ts'
import { table } from '../table.ts'
import { runWrk, transferred } from '../wrk.ts'
import type { Database } from './database.ts'
import { type BenchNode, startTwoNodes } from './two-nodes.ts'

const KEPT_ALIVE = 64

const bytes: Unit = { speed: 'MB/s', speedPer: 1e6, cpu: 's/GB', cpuPer: 1e9 }

export interface HopRow {
  readonly name: string
  readonly title: string
  readonly unit: Unit
  readonly bar: Bar
  readonly run: (stage: Stage, entrance: Entrance, seconds: number) => Promise<Load>
}

const wrk = findProgram('wrk') ?? 'wrk'

export const hopRows: readonly HopRow[] = [
  {
    name: 'requests',
    title: `requests on ${KEPT_ALIVE} kept-alive TLS connections; the CPU is that of both nodes`,
    unit: requests,
    bar: { speed: 0.55 },
    run: ({ programs }, entrance, seconds) =>
      runWrk(programs, { wrk, entrance, path: paths.small, connections: KEPT_ALIVE, seconds }),
  },
  {
    name: 'stream',
    title: 'one download over TLS; the CPU is that of both nodes',
    unit: bytes,
    bar: { speed: 0.5 },
    run: ({ programs }, entrance, seconds) => transferred(programs, { wrk, entrance, path: paths.endless, seconds }),
  },
]

export interface HopOptions {
  readonly stages: Stages
  readonly database: Database
  readonly nodeOptions: string
}

/** CPU seconds of one node for each unit of load, by lane and node. */
export type Shares = Map<string, { readonly agents: number[]; readonly visitors: number[] }>

const OWN = "through the agent's own node"
const OTHER = 'through the other node'

export interface RaisedHop {
  readonly lanes: EdgeLane[]
  readonly close: () => Promise<void>
}

export async function raiseHop(row: HopRow, options: HopOptions, shares: Shares): Promise<RaisedHop> {
  const nodes = await startTwoNodes(options)
  const stage = options.stages.open(row.name)
  const close = async (): Promise<void> => {
    await stage.close()
    await nodes.close()
  }
  try {
    const { own, other } = nodes
    const port = await freePort()
    await startUpstream(stage, { nginx: findProgram('nginx') ?? 'nginx', port })
    const { publicUrl } = await startAgent(own.place, own, ['http', `${LOOPBACK}:${port}`])
    const lane = async (name: string, node: BenchNode, bar: Bar | null): Promise<EdgeLane> => {
      const entrance = await entranceAt(node, publicUrl)
      await awaitAnswer(entrance, paths.small, SMALL_BYTES)
      const run = async (seconds: number): Promise<Load> => {
        const before = [own, other].map(({ program }) => cpuSeconds([program.pid]))
        const load = await row.run(stage, entrance, seconds)
        const [agents = 0, visitors = 0] = [own, other].map(
          ({ program }, i) => (cpuSeconds([program.pid]) - (before[i] ?? 0)) / load.amount,
        )
        const share = shares.get(name) ?? { agents: [], visitors: [] }
        share.agents.push(agents)
        share.visitors.push(visitors)
        shares.set(name, share)
        return load
      }
      const pids = (): number[] => [own, other].flatMap(({ program }) => (program.hasEnded() ? [] : [program.pid]))
      return { name, link: 'L7 HTTPS', isOurs: true, bar, pids, run }
    }
    return { lanes: [await lane(OWN, own, null), await lane(OTHER, other, row.bar)], close }
  } catch (error) {
    await close()
    throw error
  }
}

/** The CPU of each node, including the warm-up. */
export function sharesTable({ cpu, cpuPer }: Unit, shares: Shares): string {
  const lines = [...shares].map(([name, { agents, visitors }]) => [
    name,
    (median(agents) * cpuPer).toFixed(2),
    (median(visitors) * cpuPer).toFixed(2),
  ])
  return `${table([['what', `CPU of the agent's node, ${cpu}`, `CPU of the other node, ${cpu}`], ...lines])}\n`
}

async function entranceAt({ httpsPort, caFile }: BenchNode, publicUrl: string): Promise<Entrance> {
  const name = new URL(publicUrl).hostname
  return { host: LOOPBACK, port: httpsPort, tls: { name, ca: await readFile(caFile, 'utf8') } }
}
