/** Runs lanes in turns and compares each with the first one, in speed and in CPU time. */
import { type Lane, median, type Sample, type Sampled, sampleInTurns } from '../measure.ts'
import type { Result, Unit } from '../result.ts'

/** What a lane must reach, relative to the first one: at least this many times its speed, or at most its CPU time. */
export type Bar = { readonly speed: number } | { readonly cost: number }

export interface EdgeLane extends Lane {
  readonly link: string
  readonly isOurs: boolean
  /** Null when it is shown only for comparison. */
  readonly bar: Bar | null
}

export interface Compared extends Result {
  /** CPU time for one unit of load, relative to the first lane's. */
  readonly costRatio: number | null
  /** The highest allowed `costRatio`. */
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

/** Only takes the samples, for callers that collect more before they compare. */
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

/** The medians of all lanes, and their ratios to those of the first. */
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
      // A base below one tick of the CPU clock cannot be compared with.
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
