/** Hostile callers, a long list, a slow disk and a hundred thousand edges that load must not slow visitors down. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { seedStore } from '../../bench/edge/seed.ts'
import { type SlowDisk, SYNC_MS, slowDisk, WRITE_MS } from '../support/slow-disk.ts'
import type { Turn } from '../support/turn-probe.ts'
import { until } from '../support/until.ts'
import type { Owner } from '../support/upstream.ts'
import { childrenOf } from './children.ts'
import { type CallersReport, startCallers } from './hostile-callers.ts'
import type { KindReport, VisitorsReport } from './visitors.ts'
import { startVisitors } from './visitors-process.ts'
import { longestTurn, TURNS_FOLDER } from './worker-turns.ts'
import { startWorld, type World } from './world.ts'

export interface HostileOptions {
  readonly workers: number
  readonly edges: number
  /** Length of the quiet part, and of each half of the hostile part. */
  readonly seconds: number
  readonly progress: (line: string) => void
}

export interface HostileReport {
  readonly what: string
  readonly quiet: VisitorsReport
  readonly hostile: VisitorsReport
  /** For all visitors, quiet and then hostile. */
  readonly p99Ms: readonly [number, number]
  /** The longest turns of a worker by its own processor time, quiet and then hostile. */
  readonly turns: readonly [Turn | undefined, Turn | undefined]
  readonly callers: CallersReport
  /** Time from the kill of the control process until the new one was ready. */
  readonly reloadedMs: number
  readonly faults: readonly string[]
}

const REQUESTS_PER_SECOND = 200

/** How many times longer visitors may take among hostile callers. */
const TIMES_LONGER = 2

/** How long loading may take on a busy machine, in milliseconds. */
const LOAD_MS = 180_000

/** How long the machine needs to become quiet after the start, in milliseconds. */
const REST_MS = 3000

export async function hostile(owner: Owner, options: HostileOptions): Promise<HostileReport> {
  const { workers, edges, seconds, progress } = options
  const disk = slowDisk(owner)
  const hasSlowDisk = typeof disk !== 'string'
  progress(
    hasSlowDisk ? `the disk waits ${SYNC_MS} ms at each sync, ${WRITE_MS} ms at each write` : `LEFT OUT: ${disk}`,
  )
  const turnsFolder = mkdtempSync(join(tmpdir(), 'chaos-turns-'))
  owner.after(() => rmSync(turnsFolder, { recursive: true, force: true }))
  progress(`storing ${edges} edges`)
  const world = await startWorld(owner, {
    ...{ workers, drainMs: 1000, hasOfficial: false },
    env: { [TURNS_FOLDER]: turnsFolder, ...(hasSlowDisk && disk.env) },
    nodeFlags: ['--import', new URL('worker-turns.ts', import.meta.url).href],
    prepare: async (dataDir) => void (await seedStore(dataDir, { edges })),
  })
  const { api, ...places } = world.places
  const visitors = startVisitors(owner, { places, requestsPerSecond: REQUESTS_PER_SECOND })
  await pause(REST_MS)
  await visitors.report()
  const began = Date.now()
  progress(`quiet for ${seconds} s, with ${workers} workers`)
  await pause(seconds * 1000)
  const quiet = await visitors.report()
  const between = Date.now()
  const callers = startCallers(owner, { api: api ?? { url: '', key: '' } })
  if (hasSlowDisk) disk.slow()
  progress(`hostile for ${2 * seconds} s; the control process is killed in the middle, and loads all edges again`)
  await pause(seconds * 1000)
  const reloadedMs = await reload(world)
  progress(`loaded again after ${reloadedMs} ms`)
  await pause(seconds * 1000)
  const hostile = await visitors.stop()
  const turns = [longestTurn(turnsFolder, began, between), longestTurn(turnsFolder, between, Date.now())] as const
  const called = await callers.stop()
  if (hasSlowDisk) (disk satisfies SlowDisk).quick()
  const p99Ms = [quiet.all.p99, hostile.all.p99] as const
  const faults = [...failures('quiet', quiet), ...failures('hostile', hostile)]
  if (p99Ms[1] > TIMES_LONGER * p99Ms[0]) faults.push(slower(quiet, hostile))
  for (const answer of called.broken) faults.push(`the API broke: ${answer}`)
  const what = `${workers} workers, ${edges} edges on SQLite, ${hasSlowDisk ? 'slow disk' : 'NO slow disk'}, ${REQUESTS_PER_SECOND} requests a second`
  return { what, quiet, hostile, p99Ms, turns, callers: called, reloadedMs, faults }
}

/** Kills the control process; resolves when its replacement has loaded all edges. */
async function reload(world: World): Promise<number> {
  const { control } = await world.children()
  const from = world.log.lines.length
  const began = Date.now()
  process.kill(control, 'SIGKILL')
  await world.log.says(/"process is ready"/, { from, limitMs: LOAD_MS })
  await until('every process runs', () => childrenOf(world.supervisor, world.workers))
  return Date.now() - began
}

function failures(phase: string, { failed, closed }: VisitorsReport): string[] {
  return [
    ...failed.map(({ kind, why }) => `${phase}: ${kind}: ${why}`),
    ...closed.map(({ kind }) => `${phase}: ${kind}: closed while idle`),
  ]
}

function slower(quiet: VisitorsReport, hostile: VisitorsReport): string {
  const figures = ({ p50, p99, max }: KindReport) => [p50, p99, max].map((ms) => ms.toFixed(1)).join(' / ')
  return `p50 / p99 / max of visitors: ${figures(quiet.all)} ms when quiet, ${figures(hostile.all)} ms among hostile callers, over ${TIMES_LONGER} times longer`
}
