/** The results as tables for people. */
import type { Result } from '../result.ts'
import { grouped, mib, table } from '../table.ts'
import type { IdleResult } from './idle.ts'

const KIB = 1024

export function resultTable(title: string, results: readonly Result[]): string {
  const [first] = results
  if (!first) return ''
  const head = ['who', 'class', `median, ${first.speedUnit}`, 'ratio', 'to', `CPU, ${first.cpuUnit}`, 'bar']
  const lines = results.map((result) => [
    result.name,
    result.link,
    grouped(result.speed),
    result.ratio === null ? '–' : result.ratio.toFixed(2),
    result.ratio === null || result.name === result.against ? '–' : result.against,
    result.cpu === null ? '–' : result.cpu.toFixed(2),
    verdict(result),
  ])
  return `${title}\n\n${table([head, ...lines])}\n`
}

export function idleTable(result: IdleResult): string {
  const head = ['idle agents', 'bytes per agent', 'server before', 'with all', 'at its most', 'CPU to keep them', 'bar']
  const line = [
    grouped(result.agents),
    `${grouped(result.bytesPerAgent)} (${(result.bytesPerAgent / KIB).toFixed(1)} KiB)`,
    mib(result.before),
    mib(result.after),
    mib(result.peak),
    `${(result.cores * 100).toFixed(1)} % of a core`,
    result.isWithinBar ? 'at most 1 GiB: met' : 'at most 1 GiB: MISSED',
  ]
  return `idle agents, each with a session, one HTTP endpoint and heartbeats\n\n${table([head, line])}\n`
}

export function verdict({ ratio, bar }: Result): string {
  if (bar === null || ratio === null) return '–'
  return `at least ${bar.toFixed(1)}: ${ratio >= bar ? 'met' : 'MISSED'}`
}
