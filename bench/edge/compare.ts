/** Runs lanes in turns and compares each with another, usually the first, in speed and in CPU time. */
import { type Lane, median, type Sample, type Sampled, sampleInTurns } from '../measure.ts'
import type { Result, Unit } from '../result.ts'

/** What a lane must reach, relative to another one: at least this many times its speed, or at most its CPU time. */
export type Bar = { readonly speed: number } | { readonly cost: number }

export interface EdgeLane extends Lane {
  readonly link: string
  readonly isOurs: boolean
  /** Null when it is shown only for comparison. */
  readonly bar: Bar | null
  /** The name of the lane that it is compared with; the first one by default. */
  readonly against?: string
}

export interface Compared extends Result {
  /** CPU time for one unit of load, relative to that of `against`. */
  readonly costRatio: number | null
  /** The highest allowed `costRatio`. */
  readonly costBar: number | null
}

export interface Comparison {
  readonly row: string
  readonly unit: Unit
  readonly rounds: number
  readonly seconds: number
  readonly warmUpSeconds?: number | undefined
  readonly fail: (text: string) => void
  readonly progress: (text: string) => void
}

export async function compare(lanes: readonly EdgeLane[], comparison: Comparison): Promise<Compared[]> {
  return comparedOf(comparison, await sample(lanes, comparison))
}

/** Only takes the samples, for callers that collect more before they compare. */
export async function sample(
  lanes: readonly EdgeLane[],
  { row, unit, rounds, seconds, warmUpSeconds, fail, progress }: Comparison,
): Promise<Sampled<EdgeLane>[]> {
  const onSample = (lane: Lane, { perSecond }: Sample): void =>
    progress(`${row}: ${lane.name}: ${(perSecond / unit.speedPer).toFixed(0)} ${unit.speed}`)
  const sampled = await sampleInTurns(lanes, { rounds, seconds, warmUpSeconds, onSample })
  for (const { lane, failure } of sampled) if (failure !== null) fail(`${row}: ${lane.name} failed: ${failure}`)
  return sampled
}

/** The samples of a lane from several starts: two starts of the same code may differ by more than what is measured. */
export function together(
  before: Sampled<EdgeLane> | undefined,
  { lane, samples, failure }: Sampled<EdgeLane>,
): Sampled<EdgeLane> {
  return { lane, samples: [...(before?.samples ?? []), ...samples], failure: before?.failure ?? failure }
}

/**
 * The medians of all lanes, and their ratios: the median of the rounds' ratios, since the speed of a machine changes by the
 * minute, and what ran in the same round ran at much the same speed.
 */
export function comparedOf(
  { row, unit }: Pick<Comparison, 'row' | 'unit'>,
  sampled: readonly Sampled<EdgeLane>[],
): Compared[] {
  return sampled.filter(isWhole).map(({ lane, samples }) => {
    const { name, link, isOurs, bar, against = sampled[0]?.lane.name ?? '' } = lane
    const other = sampled.find((each) => each.lane.name === against)
    const base = other && isWhole(other) ? other.samples : null
    return {
      row,
      name,
      link,
      isOurs,
      speed: median(samples.map(({ perSecond }) => perSecond)) / unit.speedPer,
      speedUnit: unit.speed,
      cpu: median(samples.map(({ cpuPerUnit }) => cpuPerUnit)) * unit.cpuPer,
      cpuUnit: unit.cpu,
      ratio: base && ratioOf('perSecond', samples, base),
      // A base below one tick of the CPU clock gives no meaningful ratio.
      costRatio: base?.every(({ cpuPerUnit }) => cpuPerUnit > 0) ? ratioOf('cpuPerUnit', samples, base) : null,
      against,
      bar: bar && 'speed' in bar ? bar.speed : null,
      costBar: bar && 'cost' in bar ? bar.cost : null,
      samples,
    }
  })
}

function ratioOf(figure: keyof Sample, samples: readonly Sample[], base: readonly Sample[]): number {
  return median(samples.map((sample, round) => sample[figure] / (base[round]?.[figure] ?? Number.NaN)))
}

function isWhole({ failure, samples }: Sampled<EdgeLane>): boolean {
  return failure === null && samples.length > 0
}
