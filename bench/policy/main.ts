/**
 * What do rules and logins cost? Compares an edge that has ten typical rules, or a login, with the same edge without
 * them, and with few and many edges stored; also compares the prices of expressions with the time they take.
 */
import { comparedOf, type EdgeLane, sample, together } from '../edge/compare.ts'
import { Scene } from '../edge/scene.ts'
import { Stores } from '../edge/stores.ts'
import { comparedTable } from '../edge/table.ts'
import { describeMachine, isBusy, machineLines } from '../machine.ts'
import type { Sampled } from '../measure.ts'
import { Notes } from '../notes.ts'
import { requests } from '../result.ts'
import { findProgram } from '../stage/programs.ts'
import type { Stages } from '../stage/stage.ts'
import { withStages } from '../with-stages.ts'
import { type Options, readOptions } from './options.ts'
import { pricesTable } from './prices.ts'
import { rows } from './rows.ts'

const PRICES = 'prices'

export async function main(args: readonly string[]): Promise<void> {
  const options = readOptions(args, [...rows.map(({ name }) => name), PRICES])
  await withStages((stages) => measure(options, stages))
}

async function measure(options: Options, stages: Stages): Promise<void> {
  const { starts, rounds, seconds, only } = options
  const { note, fail } = new Notes(stages)
  const machine = describeMachine({})
  console.log(machineLines(machine).join('\n'))
  if (isBusy(machine)) {
    note(`the machine was busy before anything began (load ${machine.load.toFixed(2)}); do not trust these figures`)
  }
  const isWanted = (name: string): boolean => only?.includes(name) ?? true
  const chosen = rows.filter(({ name }) => isWanted(name))
  if (chosen.length > 0)
    console.log(`${starts} starts, ${rounds} rounds of ${seconds} s each, in turns, after a warm-up\n`)
  const progress = (text: string): void => console.error(`  ${text}`)
  const stores = new Stores(stages.open('stores'), progress)
  for (const { name, title, raise } of chosen) {
    const missing = ['wrk', 'nginx'].filter((program) => findProgram(program) === undefined)
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
        options: { ...options, fewRoutes: 1, manyRoutes: 1, out: null },
        path: (program) => findProgram(program) ?? program,
      })
      try {
        const lanes = await raise(scene, (store, edges) => stores.get(`${store}-${start}`, { edges }))
        const sampled = await sample(lanes, { row: name, unit: requests, rounds, seconds, fail, progress })
        for (const [i, each] of sampled.entries()) measured[i] = together(measured[i], each)
      } catch (error) {
        fail(`${name}: failed: ${error instanceof Error ? error.message : String(error)}`)
      } finally {
        await scene.close()
      }
    }
    console.log(comparedTable(title(options), comparedOf({ row: name, unit: requests }, measured)))
  }
  if (isWanted(PRICES)) console.log(pricesTable())
}
