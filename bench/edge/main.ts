/**
 * What does an edge cost, and does that grow with the number of stored edges? Servers with few and with many edges or
 * routes get the same load in turns, and an edge with a tunnel is compared with nginx; all on loopback in one run.
 */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { chart, type Panel } from '../chart.ts'
import { describeMachine, isBusy, machineLines } from '../machine.ts'
import { Notes } from '../notes.ts'
import { findProgram } from '../stage/programs.ts'
import type { Stages } from '../stage/stage.ts'
import { grouped } from '../table.ts'
import { withStages } from '../with-stages.ts'
import { type ChangeResult, measureChange } from './change.ts'
import { type Compared, compare } from './compare.ts'
import { type Options, readOptions } from './options.ts'
import { type Row, rows } from './rows.ts'
import { Scene } from './scene.ts'
import { measureStart, type StartResult } from './start.ts'
import { Stores } from './stores.ts'
import { changeTable, comparedTable, startTable } from './table.ts'

const CHANGE = 'change'
const START = 'start'

export async function main(args: readonly string[]): Promise<void> {
  const options = readOptions(args, [...rows.map(({ name }) => name), CHANGE, START])
  await withStages((stages) => measure(options, stages))
}

async function measure(options: Options, stages: Stages): Promise<void> {
  const { rounds, seconds, few, many, only, out } = options
  const notes = new Notes(stages)
  const { note, fail } = notes
  const versions = { nginx: ['nginx', '-v'], wrk: ['wrk', '--version'] } as const
  const found = Object.values(versions).flatMap(([program, ...rest]) => {
    const path = findProgram(program)
    return path === undefined ? [] : [[program, [path, ...rest]] as const]
  })
  const machine = describeMachine(Object.fromEntries(found))
  console.log(machineLines(machine).join('\n'))
  if (isBusy(machine)) {
    note(`the machine was busy before anything began (load ${machine.load.toFixed(2)}); do not trust these figures`)
  }
  console.log(`${rounds} rounds of ${seconds} s each, in turns, after a warm-up\n`)

  const progress = (text: string): void => console.error(`  ${text}`)
  const sceneOptions = { stages, stores: new Stores(stages.open('stores'), progress), options, path }
  /** Runs one row on its own scene; undefined if the row was not selected, or failed. */
  const row = async <T>(name: string, needs: readonly string[], work: (scene: Scene) => Promise<T>) => {
    if (only && !only.includes(name)) return undefined
    const missing = needs.filter((program) => findProgram(program) === undefined)
    if (missing.length > 0) {
      note(`${name}: left out, since ${missing.join(' and ')} is not installed`)
      return undefined
    }
    const scene = new Scene(name, sceneOptions)
    try {
      return await work(scene)
    } catch (error) {
      fail(`${name}: failed: ${error instanceof Error ? error.message : String(error)}`)
      return undefined
    } finally {
      await scene.close()
    }
  }

  const panels: (Panel & { results: readonly Compared[] })[] = []
  const show = (title: string, results: readonly Compared[]): void => {
    panels.push({ title, results })
    console.log(comparedTable(title, results))
  }
  const comparison = (of: Pick<Row, 'name' | 'unit' | 'warmUpSeconds'>) => ({
    row: of.name,
    unit: of.unit,
    rounds,
    seconds,
    warmUpSeconds: of.warmUpSeconds,
    fail,
    progress,
  })
  for (const each of rows) {
    const results = await row(each.name, each.needs, async (scene) =>
      compare(await each.raise(scene), comparison(each)),
    )
    if (results) show(`${each.name}: ${each.title(options)}`, results)
  }
  const stored = `${grouped(few)} and ${grouped(many)} edges stored`
  const change = await row(CHANGE, [], (scene) =>
    measureChange(scene, { row: CHANGE, rounds, seconds, fail, progress }),
  )
  if (change) {
    show(`${CHANGE}: a module of a route written, until a visitor sees it; ${stored}`, change.compared)
    console.log(changeTable('the same changes, one by one', change.changes))
  }
  const start = await row(START, [], (scene) => measureStart(scene, { rounds, progress }))
  if (start) console.log(startTable(`${START}: of a server; ${stored}`, start))

  if (out !== null) {
    const results = panels.flatMap((panel) => panel.results)
    const report = {
      machine,
      options,
      notes: notes.all,
      results,
      changes: change?.changes ?? null,
      start: start ?? null,
    }
    await write(out, report, chart(panels, [...machineLines(machine), ...notes.all]))
    console.log(`written: ${join(out, 'edge.json')}, ${join(out, 'edge.svg')}`)
  }
}

interface Report {
  readonly results: readonly Compared[]
  readonly changes: readonly ChangeResult[] | null
  readonly start: readonly StartResult[] | null
}

async function write(folder: string, report: Report, svg: string): Promise<void> {
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'edge.json'), `${JSON.stringify(report, null, 2)}\n`)
  await writeFile(join(folder, 'edge.svg'), svg)
}

function path(program: string): string {
  const found = findProgram(program)
  if (found === undefined) throw new Error(`${program} is not installed`)
  return found
}
