/** The memory of servers as tables for people, with the bars. */
import { mib, table } from '../table.ts'
import type { MemoryOfProcess } from './memory.ts'

const MIB = 1024 ** 2

/** The memory that all processes together may use with nothing stored, in bytes, by the number of workers. */
const EMPTY_BARS: Readonly<Record<number, number>> = { 1: 200 * MIB, 2: 300 * MIB }

/** The memory that a worker with agents or edges may use, relative to one process that does everything. */
const HOLDING_BAR = 1.3

export interface MemoryResult {
  readonly workers: number
  readonly processes: readonly MemoryOfProcess[]
}

export function emptyTable(title: string, results: readonly MemoryResult[]): string {
  const head = ['workers', 'each process', 'all, shared pages once', 'all, resident', 'bar']
  const lines = results.map(({ workers, processes }) => {
    const bar = EMPTY_BARS[workers]
    const all = sum(processes, 'share')
    const verdict = bar === undefined ? '–' : `at most ${mib(bar)}: ${met(all <= bar)}`
    return [String(workers), eachOf(processes, 'share'), mib(all), mib(sum(processes, 'resident')), verdict]
  })
  return `${title}\n\n${table([head, ...lines])}\n`
}

/** The first result must be that of one process. */
export function holdingTable(title: string, results: readonly MemoryResult[]): string {
  const head = ['workers', 'each process, resident', 'all, shared pages once', 'largest worker to one process', 'bar']
  const [base] = results
  const one = base ? sum(base.processes, 'resident') : Number.NaN
  const lines = results.map(({ workers, processes }) => {
    const largest = Math.max(...processes.filter(({ role }) => role === 'worker').map(({ resident }) => resident))
    const ratio = largest / one
    const cells = [String(workers), eachOf(processes, 'resident'), mib(sum(processes, 'share'))]
    if (workers === 0) return [...cells, '–', '–']
    return [...cells, ratio.toFixed(2), `at most ${HOLDING_BAR}: ${met(ratio <= HOLDING_BAR)}`]
  })
  return `${title}\n\n${table([head, ...lines])}\n`
}

function eachOf(processes: readonly MemoryOfProcess[], what: 'share' | 'resident'): string {
  return processes.map((each) => `${each.role} ${mib(each[what])}`).join(', ')
}

function sum(processes: readonly MemoryOfProcess[], what: 'share' | 'resident'): number {
  return processes.reduce((all, each) => all + each[what], 0)
}

function met(isMet: boolean): string {
  return isMet ? 'met' : 'MISSED'
}
