/**
 * How fast is our tunnel, and at what cost, compared with others? All run on loopback, in turns, with third-party
 * generators and upstreams; the results are medians, and the CPU seconds of all processes of each contender.
 */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { chart } from '../chart.ts'
import { describeMachine, isBusy, type Machine, machineLines } from '../machine.ts'
import { Notes } from '../notes.ts'
import type { Result } from '../result.ts'
import { findProgram } from '../stage/programs.ts'
import type { Stages } from '../stage/stage.ts'
import { withStages } from '../with-stages.ts'
import type { Contender } from './contenders/contender.ts'
import { type IdleResult, measureIdle } from './idle.ts'
import { type Options, readOptions } from './options.ts'
import { type Row, rows } from './rows.ts'
import { runRow } from './run-row.ts'
import { idleTable, resultTable } from './table.ts'

const IDLE = 'idle'

const generators = { nginx: ['nginx', '-v'], wrk: ['wrk', '--version'], iperf3: ['iperf3', '--version'] } as const

interface Report {
  readonly machine: Machine
  readonly options: Options
  readonly notes: readonly string[]
  readonly results: readonly Result[]
  readonly idle: IdleResult | null
}

export async function main(args: readonly string[]): Promise<void> {
  await compareTunnels({ name: 'tunnel', rows, hasIdle: true }, args)
}

/** What a bench measures. */
export interface Subject {
  /** The name of the bench and of the files that it writes. */
  readonly name: string
  readonly rows: readonly Row[]
  readonly hasIdle: boolean
}

export async function compareTunnels(subject: Subject, args: readonly string[]): Promise<void> {
  const options = readOptions(args, [...subject.rows.map(({ name }) => name), ...(subject.hasIdle ? [IDLE] : [])])
  await withStages((stages) => measure(subject, options, stages))
}

async function measure({ name, rows, hasIdle }: Subject, options: Options, stages: Stages): Promise<void> {
  const { only, contenders: wanted, rounds, seconds, agents, out } = options
  const notes = new Notes(stages)
  const { note, fail } = notes
  const isChosen = ({ name }: Contender): boolean => wanted?.some((part) => name.toLowerCase().includes(part)) ?? true
  const present = noteAbsent([...new Set(rows.flatMap(({ contenders }) => contenders))].filter(isChosen), note)
  const machine = describeMachine(versionCommands(present))
  console.log(machineLines(machine).join('\n'))
  if (isBusy(machine)) {
    note(`the machine was busy before anything began (load ${machine.load.toFixed(2)}); do not trust these figures`)
  }
  console.log(`${rounds} rounds of ${seconds} s each, in turns, after a warm-up\n`)

  const ground = { sshCipher: options.sshCipher, nodeOptions: options.nodeOptions }
  const progress = (text: string): void => console.error(`  ${text}`)
  const panels: { title: string; results: readonly Result[] }[] = []
  for (const row of rows) {
    if (only && !only.includes(row.name)) continue
    const mine: Row = { ...row, contenders: row.contenders.filter((each) => present.includes(each)) }
    const results = await runRow(mine, { stages, rounds, seconds, find: findProgram, ground, note, fail, progress })
    const title = `${row.name}: ${row.title}`
    panels.push({ title, results })
    console.log(`${resultTable(title, results)}`)
  }
  const idle = hasIdle && (only?.includes(IDLE) ?? true) ? await idleOrFail(agents, stages, ground, fail) : null
  if (idle) console.log(idleTable(idle))

  const results = panels.flatMap((panel) => panel.results)
  if (out !== null) {
    const foot = [...machineLines(machine), ...notes.all]
    const files = [join(out, `${name}.json`), join(out, `${name}.svg`)] as const
    await mkdir(out, { recursive: true })
    const report: Report = { machine, options, notes: notes.all, results, idle }
    await writeFile(files[0], `${JSON.stringify(report, null, 2)}\n`)
    await writeFile(files[1], chart(panels, foot))
    console.log(`written: ${files.join(', ')}`)
  }
}

/** Returns the contenders whose programs are installed, and notes the others. */
function noteAbsent(contenders: readonly Contender[], note: (text: string) => void): Contender[] {
  return contenders.filter(({ name, needs }) => {
    const missing = needs.filter((program) => findProgram(program) === undefined)
    if (missing.length > 0) note(`${name} is left out: ${missing.join(' and ')} not on PATH`)
    return missing.length === 0
  })
}

function versionCommands(contenders: readonly Contender[]): Record<string, readonly string[]> {
  const commands = Object.values<readonly [string, ...string[]]>(generators)
  for (const { version } of contenders) if (version) commands.push(version)
  const found = commands.flatMap(([program, ...args]) => {
    const path = findProgram(program)
    return path === undefined ? [] : [[program, [path, ...args]] as const]
  })
  return Object.fromEntries(found)
}

async function idleOrFail(
  agents: number,
  stages: Stages,
  ground: { sshCipher: string; nodeOptions: string },
  fail: (text: string) => void,
): Promise<IdleResult | null> {
  try {
    return await measureIdle({ stages, agents, ground: { ...ground, path: (program) => program } })
  } catch (error) {
    fail(`${IDLE}: failed: ${error instanceof Error ? error.message : String(error)}`)
    return null
  }
}
