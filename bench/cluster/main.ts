/**
 * What do several nodes give and cost? Measures the hop to another node, the time until agents of a dead node are
 * reachable again, and the cost of the directory when it is large and when it is busy.
 */
import { comparedOf, type EdgeLane, sample, together } from '../edge/compare.ts'
import { comparedTable } from '../edge/table.ts'
import { describeMachine, isBusy, machineLines } from '../machine.ts'
import type { Sampled } from '../measure.ts'
import { Notes } from '../notes.ts'
import { findProgram } from '../stage/programs.ts'
import type { Stages } from '../stage/stage.ts'
import { withStages } from '../with-stages.ts'
import { type ConnectsResult, connectsTable, measureConnects } from './connects.ts'
import { type Database, startDatabase } from './database.ts'
import { type HopRow, hopRows, raiseHop, type Shares, sharesTable } from './hop.ts'
import { lookUpTable, measureLookUp } from './lookup.ts'
import { type Options, readOptions } from './options.ts'
import { measureReconnect, reconnectTable } from './reconnect.ts'

const RECONNECT = 'reconnect'
const LOOKUP = 'lookup'
const CONNECTS = 'connects'

export async function main(args: readonly string[]): Promise<void> {
  const options = readOptions(args, [...hopRows.map(({ name }) => name), RECONNECT, LOOKUP, CONNECTS])
  await withStages(async (stages) => {
    const database = await startDatabase()
    try {
      await measure(options, stages, database)
    } finally {
      await database.stop()
    }
  })
}

async function measure(options: Options, stages: Stages, database: Database): Promise<void> {
  const { rounds, seconds, only, nodeOptions, agents, few, many, lookUps, writers } = options
  const notes = new Notes(stages)
  const machine = describeMachine({})
  console.log(machineLines(machine).join('\n'))
  if (isBusy(machine)) {
    notes.note(
      `the machine was busy before anything began (load ${machine.load.toFixed(2)}); do not trust these figures`,
    )
  }
  const progress = (text: string): void => console.error(`  ${text}`)
  const row = async (name: string, title: string, work: () => Promise<string>): Promise<void> => {
    if (!(only?.includes(name) ?? true)) return
    try {
      const shown = await work()
      console.log(`\n${name}: ${title}\n\n${shown}`)
    } catch (error) {
      notes.fail(`${name}: failed: ${error instanceof Error ? error.message : String(error)}`)
    }
  }

  for (const hop of hopRows) {
    const missing = ['wrk', 'nginx'].filter((program) => findProgram(program) === undefined)
    if (missing.length > 0) notes.note(`${hop.name}: left out, since ${missing.join(' and ')} is not installed`)
    else await row(hop.name, hop.title, () => hopTables(hop, { ...options, stages, database, notes, progress }))
  }
  await row(RECONNECT, 'agents of a node that is killed come back at the other', async () =>
    reconnectTable(await measureReconnect({ stages, database, nodeOptions, agents, progress })),
  )
  await row(LOOKUP, 'the directory with few and with many tunnels', async () =>
    lookUpTable(await measureLookUp({ database, few, many, rounds, lookUps, progress })),
  )
  await row(CONNECTS, 'what one PostgreSQL carries', async () => {
    const results: ConnectsResult[] = []
    for (const count of new Set([1, writers])) {
      progress(`connects: ${count} nodes`)
      results.push(await measureConnects({ database, writers: count, seconds: seconds * rounds }))
    }
    return connectsTable(results)
  })
}

interface HopRun extends Options {
  readonly stages: Stages
  readonly database: Database
  readonly notes: Notes
  readonly progress: (text: string) => void
}

async function hopTables(hop: HopRow, run: HopRun): Promise<string> {
  const { starts, rounds, seconds, notes, progress } = run
  const { name, unit } = hop
  const shares: Shares = new Map()
  const measured: Sampled<EdgeLane>[] = []
  for (let start = 1; start <= starts; start++) {
    progress(`${name}: start ${start} of ${starts}`)
    const { lanes, close } = await raiseHop(hop, run, shares)
    try {
      const sampled = await sample(lanes, { row: name, unit, rounds, seconds, fail: notes.fail, progress })
      for (const [i, each] of sampled.entries()) measured[i] = together(measured[i], each)
    } finally {
      await close()
    }
  }
  const compared = comparedTable(
    `${starts} starts, ${rounds} rounds of ${seconds} s`,
    comparedOf({ row: name, unit }, measured),
  )
  return `${compared}\n${sharesTable(unit, shares)}`
}
