/** Runs one row: starts the upstream and the contenders, takes samples in turns, stops all, and works out the ratios. */

import { type Lane, median, type Sample, type Sampled, sampleInTurns } from '../measure.ts'
import type { Result } from '../result.ts'
import { freePort } from '../stage/ports.ts'
import type { Stages } from '../stage/stage.ts'
import { type Contender, type Ground, type Running, raise } from './contenders/contender.ts'
import type { Row, Scene, Variant } from './rows.ts'

export interface RunOptions {
  readonly stages: Stages
  readonly rounds: number
  readonly seconds: number
  /** The path of a program; undefined when it is not installed. */
  readonly find: (program: string) => string | undefined
  readonly ground: Omit<Ground, 'stage' | 'path'>
  /** Notes that something was skipped. */
  readonly note: (text: string) => void
  /** Notes that something failed that should have worked. */
  readonly fail: (text: string) => void
  readonly progress: (text: string) => void
}

interface RowLane extends Lane {
  readonly contender: Contender
  readonly variant: Variant
}

export async function runRow(row: Row, options: RunOptions): Promise<Result[]> {
  const { stages, find, note, fail } = options
  const missing = row.needs.filter((program) => find(program) === undefined)
  if (missing.length > 0) {
    note(`${row.name}: left out, since ${missing.join(' and ')} is not installed`)
    return []
  }
  const stage = stages.open(row.name)
  const scene: Scene = { stage, upstreamPort: await freePort(), path: pathOf(find) }
  const running: Running[] = []
  try {
    await row.startUpstream(scene)
    for (const contender of row.contenders) {
      const up = await raiseOrFail(row, contender, scene, options)
      if (up) running.push(up)
    }
    const lanes = running.flatMap((up) => row.variants.map((variant) => laneOf(scene, up, variant)))
    const onSample = (lane: Lane, { perSecond }: Sample): void =>
      options.progress(`${row.name}: ${lane.name}: ${(perSecond / row.unit.speedPer).toFixed(0)} ${row.unit.speed}`)
    const sampled = await sampleInTurns(lanes, { ...options, onSample })
    for (const { lane, failure } of sampled) {
      if (failure !== null) fail(`${row.name}: ${lane.name} failed: ${failure}`)
    }
    return resultsOf(row, sampled)
  } finally {
    await Promise.all([...running.map((up) => up.stop()), stage.close()])
  }
}

async function raiseOrFail(row: Row, contender: Contender, scene: Scene, options: RunOptions) {
  const { stages, find, ground, fail } = options
  // `main` has noted missing programs already, once for all rows.
  if (contender.needs.some((program) => find(program) === undefined)) return undefined
  const stage = stages.open(contender.name)
  try {
    const running = await raise(contender, scene.upstreamPort, { ...ground, stage, path: pathOf(find) })
    await row.check(scene, running)
    return running
  } catch (error) {
    await stage.close()
    fail(`${row.name}: ${contender.name} failed: ${error instanceof Error ? error.message : String(error)}`)
    return undefined
  }
}

function laneOf(scene: Scene, running: Running, variant: Variant): RowLane {
  const { contender, pids } = running
  return {
    name: variant.name === '' ? contender.name : `${contender.name}, ${variant.name}`,
    contender,
    variant,
    pids,
    run: (seconds) => variant.run(scene, running, seconds),
  }
}

/** The medians of all lanes, and their ratios. */
export function resultsOf(row: Row, sampled: readonly Sampled<RowLane>[]): Result[] {
  const whole = sampled.filter(({ failure, samples }) => failure === null && samples.length > 0)
  const speeds = new Map(whole.map(({ lane, samples }) => [lane, median(samples.map((s) => s.perSecond))]))
  const base = ({ contender }: RowLane): RowLane | undefined =>
    whole.find(({ lane }) =>
      row.against === 'itself'
        ? lane.contender === contender && lane.variant === row.variants[0]
        : lane.contender === row.against,
    )?.lane
  return whole.map(({ lane, samples }) => {
    const against = base(lane)
    const speed = speeds.get(lane) ?? Number.NaN
    const other = against && speeds.get(against)
    const isBase = lane === against
    const { link, isOurs = false } = lane.contender
    return {
      row: row.name,
      name: lane.name,
      link,
      isOurs,
      speed: speed / row.unit.speedPer,
      speedUnit: row.unit.speed,
      cpu: lane.pids().length === 0 ? null : median(samples.map((s) => s.cpuPerUnit)) * row.unit.cpuPer,
      cpuUnit: row.unit.cpu,
      ratio: other === undefined ? null : speed / other,
      against: against?.name ?? '',
      bar: isOurs && !isBase ? row.bar : null,
      samples,
    }
  })
}

function pathOf(find: RunOptions['find']): (program: string) => string {
  return (program) => {
    const path = find(program)
    if (path === undefined) throw new Error(`${program} is not installed`)
    return path
  }
}
