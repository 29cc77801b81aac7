/** Runs lanes in turns and holds each against the first of them, in speed and in cost. */
import { type Lane, median, type Sample, type Sampled, sampleInTurns } from '../measure.ts'
import type { Result, Unit } from '../result.ts'

/** What must hold of a lane beside the first one: its speed at least, or its CPU time at most, so many times that. */
export type Bar = { readonly speed: number } | { readonly cost: number }

export interface EdgeLane extends Lane {
  readonly link: string
  readonly isOurs: boolean
  /** Null when it only stands there to be seen. */
  readonly bar: Bar | null
}

export interface Compared extends Result {
  /** CPU time for one unit of load, to that of whom it is held against. */
  readonly costRatio: number | null
  /** What `costRatio` must not pass. */
  readonly costBar: number | null
}

export interface Comparison {
  readonly row: string
  readonly unit: Unit
  readonly rounds: number
  readonly seconds: number
  readonly fail: (text: string) => void
  readonly progress: (text: string) => void
}

export async function compare(lanes: readonly EdgeLane[], comparison: Comparison): Promise<Compared[]> {
  return comparedOf(comparison, await sample(lanes, comparison))
}

/** Takes the samples alone, for those who have more of them to compare. */
export async function sample(
  lanes: readonly EdgeLane[],
  { row, unit, rounds, seconds, fail, progress }: Comparison,
): Promise<Sampled<EdgeLane>[]> {
  const onSample = (lane: Lane, { perSecond }: Sample): void =>
    progress(`${row}: ${lane.name}: ${(perSecond / unit.speedPer).toFixed(0)} ${unit.speed}`)
  const sampled = await sampleInTurns(lanes, { rounds, seconds, onSample })
  for (const { lane, failure } of sampled) if (failure !== null) fail(`${row}: ${lane.name} failed: ${failure}`)
  return sampled
}

/** Medians, and their ratios to those of the first lane. */
export function comparedOf(
  { row, unit }: Pick<Comparison, 'row' | 'unit'>,
  sampled: readonly Sampled<EdgeLane>[],
): Compared[] {
  const first = sampled[0]
  const base = first && isWhole(first) ? medians(first.samples) : null
  return sampled.filter(isWhole).map(({ lane, samples }) => {
    const { speed, cpu } = medians(samples)
    const { name, link, isOurs, bar } = lane
    return {
      row,
      name,
      link,
      isOurs,
      speed: speed / unit.speedPer,
      speedUnit: unit.speed,
      cpu: cpu * unit.cpuPer,
      cpuUnit: unit.cpu,
      ratio: base && speed / base.speed,
      // Less than a tick of the clock that counts it is no measure.
      costRatio: base && base.cpu > 0 ? cpu / base.cpu : null,
      against: first?.lane.name ?? '',
      bar: bar && 'speed' in bar ? bar.speed : null,
      costBar: bar && 'cost' in bar ? bar.cost : null,
      samples,
    }
  })
}

function isWhole({ failure, samples }: Sampled<EdgeLane>): boolean {
  return failure === null && samples.length > 0
}

function medians(samples: readonly Sample[]): { speed: number; cpu: number } {
  return { speed: median(samples.map((s) => s.perSecond)), cpu: median(samples.map((s) => s.cpuPerUnit)) }
}
