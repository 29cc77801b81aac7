/** The results as tables for people. */
import { grouped, mib, table } from '../table.ts'
import type { ChangeResult } from './change.ts'
import type { Compared } from './compare.ts'
import type { StartResult } from './start.ts'

export function comparedTable(title: string, results: readonly Compared[]): string {
  const [first] = results
  if (!first) return ''
  const head = ['what', `median, ${first.speedUnit}`, 'ratio', `CPU, ${first.cpuUnit}`, 'ratio of CPU', 'to', 'bar']
  const lines = results.map((result) => [
    result.name,
    grouped(result.speed),
    ratio(result, result.ratio),
    result.cpu === null ? '–' : result.cpu.toFixed(2),
    ratio(result, result.costRatio),
    result.name === result.against ? '–' : result.against,
    verdict(result),
  ])
  return `${title}\n\n${table([head, ...lines])}\n`
}

export function changeTable(title: string, results: readonly ChangeResult[]): string {
  const head = ['what', 'write to in force, median', 'longest', 'after the answer, at most', 'edges read again', 'bar']
  const lines = results.map((result) => [
    result.name,
    `${result.medianMs.toFixed(2)} ms`,
    `${result.longestMs.toFixed(1)} ms`,
    `${result.afterAnswerMs.toFixed(1)} ms`,
    result.readAgain.toFixed(1),
    `within 200 ms: ${met(result.isWithinBar)}`,
  ])
  return `${title}\n\n${table([head, ...lines])}\n`
}

export function startTable(title: string, results: readonly StartResult[]): string {
  const head = ['what', 'agents are let in after', 'ready after', 'CPU until then', 'memory', 'bar']
  const seconds = (ms: number): string => `${(ms / 1000).toFixed(2)} s`
  const lines = results.map((result) => [
    result.name,
    seconds(result.agentsMs),
    seconds(result.readyMs),
    `${result.cpuSeconds.toFixed(2)} s`,
    mib(result.memory),
    `agents within 2 s: ${met(result.isWithinBar)}`,
  ])
  return `${title}\n\n${table([head, ...lines])}\n`
}

export function verdict({ ratio, bar, costRatio, costBar }: Compared): string {
  if (bar !== null && ratio !== null) return `at least ${shortest(bar)}: ${met(ratio >= bar)}`
  if (costBar !== null && costRatio !== null) return `CPU at most ${shortest(costBar)}: ${met(costRatio <= costBar)}`
  return '–'
}

/** One decimal, or two where one would change the value. */
function shortest(bar: number): string {
  const one = bar.toFixed(1)
  return Number(one) === bar ? one : bar.toFixed(2)
}

function ratio({ name, against }: Compared, value: number | null): string {
  return value === null || name === against ? '–' : value.toFixed(2)
}

function met(isMet: boolean): string {
  return isMet ? 'met' : 'MISSED'
}
