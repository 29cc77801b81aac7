/** Upgrades a server repeatedly under load: no visitor notices, and a broken new version changes nothing. */
import { setTimeout as pause } from 'node:timers/promises'
import { metric } from '../support/metrics.ts'
import { until } from '../support/until.ts'
import type { Owner } from '../support/upstream.ts'
import { type Footprint, footprint, leftovers } from './footprint.ts'
import { type Breakage, breakages, copyProgram, type Program } from './program.ts'
import { judge, lostWrites, type Round, type Verdict } from './verdict.ts'
import type { VisitorsReport } from './visitors.ts'
import { startVisitors } from './visitors-process.ts'
import { startWorld, type World } from './world.ts'

export interface UpgradeOptions {
  readonly rounds: number
  /** The minimum number of requests. */
  readonly requests: number
  readonly workers: number
  /** SQLite if omitted. */
  readonly databaseUrl?: string
  readonly progress: (line: string) => void
}

export interface UpgradeReport extends Verdict {
  readonly visitors: VisitorsReport
  readonly rounds: readonly Round[]
  readonly restarts: number
  readonly before: Footprint
  readonly after: Footprint
}

/** Short, since each round takes at least this long. */
const DRAIN_MS = 4000

const REQUESTS_PER_SECOND = 440

/** The limit for every other wait, in milliseconds. */
const PATIENCE_MS = 60_000

/** Every this many rounds, the new version is broken. */
const BROKEN_EVERY = 6

/** Every this many rounds, the next one begins before former processes have ended. */
const HASTE_EVERY = 4

/** How long the machine rests before memory and descriptors are compared, in milliseconds. */
const REST_MS = 3000

export async function upgrade(owner: Owner, options: UpgradeOptions): Promise<UpgradeReport> {
  const { workers, databaseUrl, progress } = options
  const program = copyProgram(owner)
  const world = await startWorld(owner, {
    ...{ workers, drainMs: DRAIN_MS, launcher: program.launcher, flags: { config: program.config } },
    ...(databaseUrl !== undefined && { databaseUrl }),
  })
  const before = footprint(world, await world.children())
  const visitors = startVisitors(owner, { places: world.places, requestsPerSecond: REQUESTS_PER_SECOND })
  const rounds: Round[] = []
  for (let number = 1; number <= options.rounds; number++) {
    const round = await upgradeOnce(world, program, number)
    rounds.push(round)
    const how = round.breakage === undefined ? 'upgraded' : `refused (${round.breakage})`
    progress(
      `round ${number} of ${options.rounds}: ${how} after ${round.done - round.began} ms; ${visitors.done} requests`,
    )
    // Spreads the load evenly over the rounds.
    const due = (options.requests * number) / options.rounds
    while (visitors.done < due) await pause(50)
  }
  await until('former processes have ended', () => rounds.every(({ breakage, ended }) => breakage ?? ended))
  const report = await visitors.stop()
  await pause(REST_MS)
  const after = footprint(world, await world.children())
  const restarts = await metric(world.server.metricsUrl, 'postern_process_restarts_total')
  const verdict = judge(report, rounds, DRAIN_MS)
  const faults = [...verdict.faults, ...leftovers({ before, after }), ...(await lostWrites(world.api, report))]
  if (restarts > 0) faults.push(`${restarts} processes ended by themselves`)
  const { code } = await world.server.stop()
  if (code !== 0) faults.push(`the server ended with ${code}`)
  return { ...verdict, visitors: report, rounds, faults, restarts, before, after }
}

/** Resolves when the new version serves or is rightly refused; in most rounds, only after the old one has ended. */
async function upgradeOnce({ log, server }: World, program: Program, number: number): Promise<Round> {
  const names = Object.keys(breakages) as Breakage[] // its keys are its type
  const breakage = number % BROKEN_EVERY === 0 ? names[(number / BROKEN_EVERY - 1) % names.length] : undefined
  program.release(`0.1.${number}`)
  const repair = breakage && program.breakIt(breakage)
  const from = log.lines.length
  const began = Date.now()
  server.kill('SIGUSR2')
  const { at, msg, text } = await log.says(/"upgrade (done|failed)/, { from, limitMs: PATIENCE_MS })
  repair?.()
  const isDone = msg.startsWith('upgrade done')
  if (isDone !== (breakage === undefined)) throw new Error(`round ${number} (${breakage ?? 'upgrade'}): ${text}`)
  const round: Round = { number, breakage, began, done: at, ended: undefined }
  if (!isDone) return round
  const { from: former } = JSON.parse(text) as { from: string } // a field of that line
  const ended = log
    .says(new RegExp(`"${former}".*before the upgrade have ended`), { from, limitMs: PATIENCE_MS })
    .then((line) => {
      round.ended = line.at
    })
  if (number % HASTE_EVERY === 0) ended.catch(() => {})
  else await ended
  return round
}
