/**
 * What do rules and logins cost? Ten typical rules, and the check of a login, beside the same edge without them, and with few
 * and with many edges stored; and what expressions are charged beside what they take.
 */
import { compare } from '../edge/compare.ts'
import { Scene } from '../edge/scene.ts'
import { Stores } from '../edge/stores.ts'
import { comparedTable } from '../edge/table.ts'
import { describeMachine, isBusy, machineLines } from '../machine.ts'
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
  const { rounds, seconds, only } = options
  const { note, fail } = new Notes(stages)
  const machine = describeMachine({})
  console.log(machineLines(machine).join('\n'))
  if (isBusy(machine)) {
    note(`the machine was busy before anything began (load ${machine.load.toFixed(2)}); do not trust these figures`)
  }
  const isWanted = (name: string): boolean => only?.includes(name) ?? true
  const chosen = rows.filter(({ name }) => isWanted(name))
  if (chosen.length > 0) console.log(`${rounds} rounds of ${seconds} s each, in turns, after a warm-up\n`)
  const progress = (text: string): void => console.error(`  ${text}`)
  const stores = new Stores(stages.open('stores'), progress)
  for (const { name, title, raise } of chosen) {
    const missing = ['wrk', 'nginx'].filter((program) => findProgram(program) === undefined)
    if (missing.length > 0) {
      note(`${name}: left out, since ${missing.join(' and ')} is not installed`)
      continue
    }
    const scene = new Scene(name, {
      stages,
      stores,
      options: { ...options, fewRoutes: 1, manyRoutes: 1, out: null },
      path: (program) => findProgram(program) ?? program,
    })
    try {
      const lanes = await raise(scene, (store, edges) => stores.get(store, { edges }))
      const results = await compare(lanes, { row: name, unit: requests, rounds, seconds, fail, progress })
      console.log(comparedTable(title(options), results))
    } catch (error) {
      fail(`${name}: failed: ${error instanceof Error ? error.message : String(error)}`)
    } finally {
      await scene.close()
    }
  }
  if (isWanted(PRICES)) console.log(pricesTable())
}
