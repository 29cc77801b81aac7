/**
 * Did a change make the hot path slower? Compares what a request, a gigabyte, a connection and a bind cost two versions, and
 * the memory that they need at rest. Their servers and agents get the same load at the same time, so that whatever else the machine does affects both: its speed changes by the
 * second, so turns would not be comparable. The version behind reads more requests at once, which might hide its cost;
 * with each write made some 1.2 µs slower, about 8 % of a request, two pairs showed 1.09, 1.07 (in turns 1.09, 1.20).
 * Several pairs are started, because two starts of the same code differ too. Where the system allows it, servers stay
 * on one core and agents on another, because a process that moves between cores loses its caches.
 */
import { execFileSync } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { count, FlagFault, onlyRows } from '../flags.ts'
import { describeMachine, machineLines } from '../machine.ts'
import { median } from '../measure.ts'
import { startUpstream } from '../nginx.ts'
import { freePort } from '../stage/ports.ts'
import { findProgram } from '../stage/programs.ts'
import type { Stages } from '../stage/stage.ts'
import { table } from '../table.ts'
import { withStages } from '../with-stages.ts'
import { type Cost, type Measure, measures, type Tools } from './measures.ts'
import { raiseSide, type Side } from './side.ts'
import { unpack } from './unpack.ts'

/** The highest allowed ratio, which leaves room for chance. */
const BAR = 1.03

/** Rounds that do not count. */
const WARM_UP_ROUNDS = 2

/** The name of this version. */
const THIS = 'this'

interface Options {
  readonly against: string
  readonly starts: number
  readonly rounds: number
  readonly seconds: number
  readonly only: readonly string[] | null
}

export async function main(args: readonly string[]): Promise<void> {
  const options = readOptions(args)
  await withStages(async (stages) => {
    try {
      await measure(options, stages)
    } finally {
      await stages.closeAll()
    }
  })
}

function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      against: { type: 'string' },
      starts: { type: 'string', default: '3' },
      rounds: { type: 'string', default: '3' },
      seconds: { type: 'string', default: '5' },
      only: { type: 'string' },
    },
  })
  if (!values.against) throw new FlagFault('--against names the version to compare with, such as main~10')
  return {
    against: values.against,
    starts: count('starts', values.starts, 1),
    rounds: count('rounds', values.rounds, 1),
    seconds: count('seconds', values.seconds, 1),
    only: onlyRows(
      values.only,
      measures.map(({ name }) => name),
    ),
  }
}

async function measure({ against, starts, rounds, seconds, only }: Options, stages: Stages): Promise<void> {
  const [nginx, wrk] = [program('nginx'), program('wrk')]
  console.log(machineLines(describeMachine({})).join('\n'))
  console.log(`${starts} pairs of servers, ${rounds} rounds of ${seconds} s each, both at the same time\n`)
  const root = unpack(stages.open('version'), against)
  const stage = stages.open('load')
  const port = await freePort()
  await startUpstream(stage, { nginx, port })
  const chosen = measures.filter(({ name }) => only?.includes(name) ?? true)
  const all = new Map(chosen.map((each) => [each, [] as [Side, Cost[]][]]))
  for (let i = 0; i < starts; i++) {
    console.error(`  pair ${i + 1} of ${starts}`)
    // Another version goes first each time.
    const pair = i % 2 === 0 ? [against, THIS] : [THIS, against]
    const places = pair.map(() => stages.open('side'))
    const sides: Side[] = []
    for (const [n, stage] of places.entries()) {
      const version = pair[n] ?? THIS
      sides.push(await raiseSide(version, { stage, nodeOptions: '', ...(version === against && { root }) }, port))
    }
    for (const { pids } of sides) keepToCores(pids)
    for (const [each, measured] of all) {
      const costs = sides.map((side): [Side, Cost[]] => [side, []])
      const tools: Tools = { wrk, seconds, stages, programs: stage.programs }
      const [from, to] = each.isOnce ? [0, 1] : [-WARM_UP_ROUNDS, rounds]
      for (let round = from; round < to; round++) {
        const taken = await Promise.all(sides.map((side) => each.run(side, tools)))
        if (round >= 0) for (const [i, cost] of taken.entries()) costs[i]?.[1].push(cost)
      }
      const shown = costs.map(([{ version }, samples]) => `${version} ${sumOf(each, samples)}`)
      console.error(`  ${each.name}: ${shown.sort().join(', ')} ${each.unit}`)
      measured.push(...costs)
    }
    await Promise.all(places.map((place) => place.close()))
  }
  const head = ['row', 'unit', `server: ${against}`, THIS, 'ratio', 'agent', THIS, 'ratio', 'both', 'bar']
  console.log(`${table([head, ...[...all].map(([each, measured]) => row(each, measured, against))])}\n`)
}

function row(
  { name, unit, perUnit }: Measure,
  costs: readonly (readonly [Side, readonly Cost[]])[],
  against: string,
): string[] {
  /** The median of the starts' medians: some starts stay a fifth faster or slower for as long as they run. */
  const of = (version: string, part: keyof Cost): number => {
    const medians = costs.flatMap(([side, samples]) =>
      side.version === version ? [median(samples.map((cost) => cost[part]))] : [],
    )
    return median(medians) * perUnit
  }
  /** The ratio within each pair, which ran at the same time; the median of the pairs' medians. */
  const ratio = (part: keyof Cost): number => {
    const [before, now] = [against, THIS].map((version) => costs.filter(([side]) => side.version === version))
    const ofPairs = (now ?? []).map(([, samples], pair) =>
      median(samples.map((cost, round) => cost[part] / (before?.[pair]?.[1][round]?.[part] ?? Number.NaN))),
    )
    return median(ofPairs)
  }
  const cells = (part: 'server' | 'agent'): string[] => {
    const [before, now] = [of(against, part), of(THIS, part)]
    // An agent without traffic only sends heartbeats.
    return before < 1 ? ['–', '–', '–'] : [before.toFixed(1), now.toFixed(1), ratio(part).toFixed(3)]
  }
  const [server, both] = [ratio('server'), ratio('sum')]
  const verdict = (of: number): string => (of <= BAR ? 'met' : 'MISSED')
  const bar = `at most ${BAR}: server ${verdict(server)}, both ${verdict(both)}`
  return [name, unit, ...cells('server'), ...cells('agent'), both.toFixed(3), bar]
}

function sumOf({ perUnit }: Measure, samples: readonly Cost[]): string {
  return (median(samples.map(({ sum }) => sum)) * perUnit).toFixed(1)
}

function keepToCores({ server, agent }: Side['pids']): void {
  const taskset = findProgram('taskset')
  if (taskset === undefined || availableParallelism() < 2) return
  for (const [core, pid] of [server, agent].entries()) {
    execFileSync(taskset, ['--all-tasks', '--cpu-list', '--pid', String(core), String(pid)], { stdio: 'ignore' })
  }
}

function program(name: string): string {
  const found = findProgram(name)
  if (found === undefined) throw new FlagFault(`${name} is not installed`)
  return found
}
