/**
 * What do several processes give and cost? Compares the rate of two workers with that of one, and a request through a
 * server of several processes with one through a server of one; adds up the memory of all processes.
 */
import { comparedOf, type EdgeLane, sample, together } from '../edge/compare.ts'
import { Scene } from '../edge/scene.ts'
import { Stores } from '../edge/stores.ts'
import { comparedTable } from '../edge/table.ts'
import { describeMachine, isBusy, machineLines } from '../machine.ts'
import type { Sampled } from '../measure.ts'
import { Notes } from '../notes.ts'
import { findProgram } from '../stage/programs.ts'
import type { Stages } from '../stage/stage.ts'
import { grouped } from '../table.ts'
import { withStages } from '../with-stages.ts'
import { type MemoryOptions, measureMemory } from './memory.ts'
import { emptyTable, holdingTable, type MemoryResult } from './memory-table.ts'
import { type Options, readOptions } from './options.ts'
import { makePackaged, type Packaged } from './packaged.ts'
import { rows } from './rows.ts'

const MEMORY = 'memory'
const IDLE_AGENTS = 'idle-agents'
const EDGES = 'edges'

/** Stored edges where their number does not matter. */
const FEW = 10

const WORKERS = [0, 1, 2]

export async function main(args: readonly string[]): Promise<void> {
  const options = readOptions(args, [...rows.map(({ name }) => name), MEMORY, IDLE_AGENTS, EDGES])
  await withStages((stages) => measure(options, stages))
}

async function measure(options: Options, stages: Stages): Promise<void> {
  const { starts, rounds, seconds, only, nodeOptions, agents, edges } = options
  const { note, fail } = new Notes(stages)
  const machine = describeMachine({})
  console.log(machineLines(machine).join('\n'))
  if (isBusy(machine)) {
    note(`the machine was busy before anything began (load ${machine.load.toFixed(2)}); do not trust these figures`)
  }
  console.log(`${starts} starts, ${rounds} rounds of ${seconds} s each, in turns, after a warm-up\n`)
  const progress = (text: string): void => console.error(`  ${text}`)
  const stores = new Stores(stages.open('stores'), progress)
  const failed = (name: string, error: unknown): void =>
    fail(`${name}: failed: ${error instanceof Error ? error.message : String(error)}`)
  const isWanted = (name: string): boolean => only?.includes(name) ?? true

  for (const { name, title, unit, needs, raise } of rows) {
    if (!isWanted(name)) continue
    const missing = needs.filter((program) => findProgram(program) === undefined)
    if (missing.length > 0) {
      note(`${name}: left out, since ${missing.join(' and ')} is not installed`)
      continue
    }
    const measured: Sampled<EdgeLane>[] = []
    for (let start = 1; start <= starts; start++) {
      progress(`${name}: start ${start} of ${starts}`)
      const scene = new Scene(name, {
        stages,
        stores,
        options: { ...options, few: FEW, many: edges, fewRoutes: 1, manyRoutes: 1, out: null },
        path: (program) => findProgram(program) ?? program,
      })
      try {
        const lanes = await raise(scene)
        const sampled = await sample(lanes, { row: name, unit, rounds, seconds, fail, progress })
        for (const [i, each] of sampled.entries()) measured[i] = together(measured[i], each)
      } catch (error) {
        failed(name, error)
      } finally {
        await scene.close()
      }
    }
    console.log(comparedTable(`${name}: ${title}`, comparedOf({ row: name, unit }, measured)))
  }

  let packaged: Packaged | undefined
  const memory = async (
    name: string,
    what: () => Promise<Pick<MemoryOptions, 'store' | 'agents'>>,
    show: (results: readonly MemoryResult[]) => string,
  ): Promise<void> => {
    if (!isWanted(name)) return
    try {
      packaged ??= makePackaged(stages.open('packaged'))
      const results: MemoryResult[] = []
      for (const workers of WORKERS) {
        progress(`${name}: ${workers} workers`)
        const all = { stages, packaged, nodeOptions, workers, ...(await what()) }
        results.push({ workers, processes: await measureMemory(all) })
      }
      console.log(show(results))
    } catch (error) {
      failed(name, error)
    }
  }
  await memory(
    MEMORY,
    async () => ({}),
    (results) => emptyTable(`${MEMORY}: nothing stored, nothing connected`, results),
  )
  await memory(
    IDLE_AGENTS,
    async () => ({ agents }),
    (results) => holdingTable(`${IDLE_AGENTS}: ${grouped(agents)} agents, each with an HTTP endpoint`, results),
  )
  await memory(
    EDGES,
    async () => ({ store: await stores.get('many-edges', { edges }) }),
    (results) => holdingTable(`${EDGES}: ${grouped(edges)} HTTPS edges stored`, results),
  )
}
