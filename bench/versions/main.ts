/**
 * Did a change make the hot path slower? Servers and agents of two versions carry the same load at the same time, so that
 * whatever the machine does meanwhile falls on both, and what is compared is the CPU time that each used for a request.
 * Several of each are started, since two starts of the same code differ too.
 */
import { parseArgs } from 'node:util'
import { count, FlagFault, onlyRows } from '../flags.ts'
import { describeMachine, machineLines } from '../machine.ts'
import { median } from '../measure.ts'
import { paths, startUpstream } from '../nginx.ts'
import { freePort } from '../stage/ports.ts'
import { cpuSeconds } from '../stage/proc.ts'
import { findProgram } from '../stage/programs.ts'
import type { Stages } from '../stage/stage.ts'
import { table } from '../table.ts'
import { withStages } from '../with-stages.ts'
import { runWrk } from '../wrk.ts'
import { raiseSide, type Side, ways } from './side.ts'
import { unpack } from './unpack.ts'

/** What a change may cost at most, to leave room for chance. */
const BAR = 1.03

const CONNECTIONS = 32

const MICROSECONDS = 1e6

interface Options {
  readonly against: string
  readonly starts: number
  readonly rounds: number
  readonly seconds: number
  readonly only: readonly string[] | null
}

/** CPU for a request, in seconds. */
type Cost = Readonly<Record<'server' | 'agent' | 'sum', number>>

export async function main(args: readonly string[]): Promise<void> {
  const options = readOptions(args)
  await withStages((stages) => measure(options, stages).finally(() => stages.closeAll()))
}

function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      against: { type: 'string' },
      starts: { type: 'string', default: '3' },
      rounds: { type: 'string', default: '5' },
      seconds: { type: 'string', default: '8' },
      only: { type: 'string' },
    },
  })
  if (!values.against) throw new FlagFault('--against names the version to compare with, such as main~10')
  return {
    against: values.against,
    starts: count('starts', values.starts, 1),
    rounds: count('rounds', values.rounds, 1),
    seconds: count('seconds', values.seconds, 1),
    only: onlyRows(values.only, ways),
  }
}

async function measure({ against, starts, rounds, seconds, only }: Options, stages: Stages): Promise<void> {
  const [nginx, wrk] = [program('nginx'), program('wrk')]
  console.log(machineLines(describeMachine({})).join('\n'))
  console.log(`${starts} servers of each version, ${rounds} rounds of ${seconds} s, all at the same time\n`)
  const root = unpack(stages.open('version'), against)
  const stage = stages.open('load')
  const port = await freePort()
  await startUpstream(stage, { nginx, port })
  const sides: Side[] = []
  for (let i = 0; i < starts; i++) {
    for (const version of [against, 'this']) {
      console.error(`  starting ${version}, ${i + 1} of ${starts}`)
      const place = { stage: stages.open('side'), nodeOptions: '', ...(version === against && { root }) }
      sides.push(await raiseSide(version, place, port))
    }
  }

  const lines: string[][] = []
  for (const way of ways) {
    if (only && !only.includes(way)) continue
    const costs = new Map<Side, Cost[]>(sides.map((side) => [side, []]))
    for (let round = -1; round < rounds; round++) {
      console.error(`  ${way}: ${round < 0 ? 'warm-up' : `round ${round + 1} of ${rounds}`}`)
      const load = async (side: Side): Promise<void> => {
        const cpu = (): [number, number] => [cpuSeconds([side.pids.server]), cpuSeconds([side.pids.agent])]
        const before = cpu()
        const entrance = side.entrances[way]
        const options = { wrk, entrance, path: paths.small, connections: CONNECTIONS, seconds }
        const { amount } = await runWrk(stage.programs, options)
        const after = cpu()
        const [server, agent] = [(after[0] - before[0]) / amount, (after[1] - before[1]) / amount]
        if (round >= 0) costs.get(side)?.push({ server, agent, sum: server + agent })
      }
      await Promise.all(sides.map(load))
    }
    lines.push(row(way, costs, against))
  }
  const head = ['way', `server, µs: ${against}`, 'this', 'ratio', 'agent, µs', 'this', 'ratio', 'both', 'bar']
  console.log(`${table([head, ...lines])}\n`)
}

function row(way: string, costs: ReadonlyMap<Side, readonly Cost[]>, against: string): string[] {
  /** The mean of what each start has as its median. */
  const of = (version: string, part: keyof Cost): number => {
    const medians = [...costs].flatMap(([side, samples]) =>
      side.version === version ? [median(samples.map((cost) => cost[part]))] : [],
    )
    return (medians.reduce((sum, value) => sum + value, 0) / medians.length) * MICROSECONDS
  }
  const cells = (part: 'server' | 'agent'): string[] => {
    const [before, now] = [of(against, part), of('this', part)]
    // An agent that carries nothing has only its heartbeats.
    return before < 1 ? ['–', '–', '–'] : [before.toFixed(1), now.toFixed(1), (now / before).toFixed(3)]
  }
  const both = of('this', 'sum') / of(against, 'sum')
  const bar = `at most ${BAR}: ${both <= BAR ? 'met' : 'MISSED'}`
  return [way, ...cells('server'), ...cells('agent'), both.toFixed(3), bar]
}

function program(name: string): string {
  const found = findProgram(name)
  if (found === undefined) throw new FlagFault(`${name} is not installed`)
  return found
}
