/** Prints the report of a run for people. */
import type { Footprint } from './footprint.ts'
import type { HostileReport } from './hostile.ts'
import type { KillReport } from './kill.ts'
import type { NeighboursReport } from './neighbours.ts'
import { type Invariant, invariants, type NodesReport } from './nodes.ts'
import type { RollingReport } from './rolling.ts'
import type { StillReport } from './still.ts'
import type { StopsReport } from './stops.ts'
import type { UpgradeReport } from './upgrade.ts'
import type { KindReport } from './visitors.ts'

/** Faults that are printed in full. */
const MAX_FAULTS = 80

export function kindTable(kinds: Readonly<Record<string, KindReport>>): string {
  const rows = Object.entries(kinds)
    .sort(([a], [b]) => a.localeCompare(b))
    .map(([kind, { done, failed, repeated, p50, p99, max }]) => [
      kind,
      ...[done, failed, repeated].map(String),
      ...[p50, p99, max].map((ms) => ms.toFixed(1)),
    ])
  const total = (key: 'done' | 'failed' | 'repeated') =>
    String(Object.values(kinds).reduce((sum, each) => sum + each[key], 0))
  rows.unshift(['', 'done', 'failed', 'repeated', 'p50 ms', 'p99 ms', 'max ms'])
  rows.push(['all', total('done'), total('failed'), total('repeated'), '', '', ''])
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? []
  return rows
    .map((row) =>
      row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0))).join('  '),
    )
    .join('\n')
}

export function faultLines(faults: readonly string[]): string {
  const more = faults.length - MAX_FAULTS
  return [...faults.slice(0, MAX_FAULTS), ...(more > 0 ? [`and ${more} more`] : [])].join('\n')
}

export function footprintLine(name: string, { processes, descriptors, residentMib, unixSockets }: Footprint): string {
  const three = (of: Footprint['descriptors']) => `${of.supervisor} + ${of.control} + ${of.workers}`
  return `${name}: ${processes} processes, descriptors ${three(descriptors)}, resident MiB ${three(residentMib)} (supervisor + control + workers), ${unixSockets} Unix sockets`
}

export function upgradeText(report: UpgradeReport): string {
  const good = report.rounds.filter(({ breakage }) => breakage === undefined)
  const seconds = good.map(({ began, done }) => (done - began) / 1000).sort((a, b) => a - b)
  const [least = 0, middle = 0, most = 0] = [0, Math.floor(seconds.length / 2), seconds.length - 1].map(
    (i) => seconds[i],
  )
  return [
    kindTable(report.visitors.kinds),
    `upgrades: ${good.length} done, in ${least.toFixed(1)} / ${middle.toFixed(1)} / ${most.toFixed(1)} s (least, median, most); ${report.rounds.length - good.length} broken ones refused`,
    `after the drain time: ${report.closedAfterDrain} idle connections closed, ${report.cutAfterDrain} cut with an echo on its way`,
    `official agent: ${report.official} failures while it reconnected; processes replaced: ${report.restarts}`,
    footprintLine('before', report.before),
    footprintLine('after', report.after),
  ].join('\n')
}

export function killText(report: KillReport): string {
  const excused = Object.entries(report.excused).flatMap(([why, kinds]) =>
    Object.entries(kinds).map(([kind, count]) => `excused, ${why}: ${kind} ${count}`),
  )
  return [
    kindTable(report.visitors.kinds),
    ...excused,
    `official agent: ${report.official} failures while it reconnected`,
    `back after ${report.backMs.own} ms at most, official agent after ${report.backMs.official} ms`,
    `killed ${report.kills.length}, replaced ${report.restarts}; acknowledged writes: ${report.visitors.acknowledged.length}, all there unless said below`,
    footprintLine('before', report.before),
    footprintLine('after', report.after),
  ].join('\n')
}

export function nodesText(report: NodesReport): string {
  const { seed, visits, spans, excused, agents, writes, backMs, slowMs, broken } = report
  const counts = Map.groupBy(spans, ({ kind }) => kind)
  const struck = [...counts].map(([kind, some]) => `${kind} ${some.length}`)
  const lines = Object.entries(broken).map(
    ([key, faults]) =>
      `${faults.length === 0 ? 'held' : `BROKEN ${faults.length} times`}: ${invariants[key as Invariant]}`, // its keys are its type
  )
  return [
    `seed ${seed}; faults: ${struck.join(', ')}`,
    `${visits} visits; lost with good reason: ${
      Object.entries(excused)
        .map(([why, count]) => `${count} (${why})`)
        .join(', ') || 'none'
    }`,
    `agents: ${agents.came} came, ${agents.refused} were not let in; writes: ${writes.acknowledged} acknowledged, ${writes.unknown} not`,
    `all served again after ${Math.max(...backMs)} ms at most, ${backMs.length} times; the machine stood still for ${slowMs} ms in all`,
    ...lines,
  ].join('\n')
}

export function rollingText({ served, seconds, restarts, faults }: RollingReport): string {
  const rate = (served / seconds).toFixed(0)
  return `${restarts} nodes stopped and started again; ${served} requests served, ${rate} a second, ${faults.length} failed`
}

export function stopsText({ served, stops, upgrades, repeated, faults }: StopsReport): string {
  return [
    `${stops} stops and ${upgrades} upgrades with a control process that stood still; ${served} requests served, ${faults.length} failed`,
    `made again during upgrades, since they were refused unread: ${repeated}`,
  ].join('\n')
}

export function stillText({ seed, rounds, answers, slowestMs }: StillReport): string {
  const counted = (all: Readonly<Record<string, number>>): string =>
    Object.entries(all)
      .map(([what, count]) => `${what} ${count}`)
      .join(', ')
  return [
    `seed ${seed}; stood still: ${counted(rounds)}`,
    `answers to another owner who asked for names of live agents: ${counted(answers)}`,
    `all was served again after ${slowestMs} ms at most`,
  ].join('\n')
}

export function hostileText({ what, quiet, hostile, p99Ms, turns, callers, reloadedMs }: HostileReport): string {
  const documents = Object.entries(callers.documents).map(([status, count]) => `${status}: ${count}`)
  const [before, among] = p99Ms
  const [calm, busy] = turns.map((turn) =>
    turn
      ? `${turn.cpuMs.toFixed(1)} ms of processor time (collector: ${turn.collectorMs.toFixed(1)} ms by the clock)`
      : 'unknown',
  )
  return [
    what,
    `quiet\n${kindTable(quiet.kinds)}`,
    `hostile\n${kindTable(hostile.kinds)}`,
    `p99 of all visitors: ${before.toFixed(1)} ms when quiet, ${among.toFixed(1)} ms among hostile callers: ${(among / before).toFixed(2)} times`,
    `longest turn of a worker: ${calm} when quiet, ${busy} among hostile callers`,
    `hostile documents by status: ${documents.join(', ')}`,
    `pages listed: ${callers.pages}, longest list ${callers.listed} edges, ${callers.pageFailures.length} pages failed`,
    `the control process was killed, and had loaded all again after ${reloadedMs} ms`,
  ].join('\n')
}

/** In Markdown. */
export function neighboursText({ what, quiet, hostile, memory, attacks }: NeighboursReport): string {
  const rows = Object.entries(hostile.kinds)
    .toSorted(([a], [b]) => a.localeCompare(b))
    .map(([kind, { done, failed, p50, p99, max }]) => {
      const was = quiet.kinds[kind]
      const times = [was?.p50, was?.p99, p50, p99, max].map((ms) => (ms === undefined ? '' : ms.toFixed(1)))
      return [kind, was?.done, was?.failed, done, failed, ...times]
    })
  const table = (...lines: readonly (readonly unknown[])[]) => lines.map((line) => `| ${line.join(' | ')} |`).join('\n')
  const head = [
    'bystanders',
    'quiet',
    'failed',
    'attacked',
    'failed',
    'p50 quiet, ms',
    'p99 quiet',
    'p50',
    'p99',
    'max',
  ]
  const mib = Object.entries(memory).map(([name, all]) => [name, ...all.map((each) => each.toFixed(0))])
  const did = Object.entries(attacks).flatMap(([role, counts]) =>
    Object.entries(counts).map(([deed, count]) => [role, deed, count]),
  )
  return [
    what,
    table(
      head,
      head.map(() => '---'),
      ...rows,
    ),
    table(['memory, MiB', 'before', 'most', 'after'], ['---', '---', '---', '---'], ...mib),
    table(['attacker', 'what it did', 'times'], ['---', '---', '---'], ...did),
  ].join('\n\n')
}
