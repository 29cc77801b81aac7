/** Takes samples of several lanes in turns, so that a slow moment of the machine does not hit only one of them. */
import { cpuSeconds } from './stage/proc.ts'

/** The longest warm-up of a lane in seconds, which does not count: it fills caches and compiles code. */
const WARM_UP_S = 2

/** How much got through, and in what time. */
export interface Load {
  readonly amount: number
  readonly seconds: number
}

/** One of several things that are measured in turns. */
export interface Lane {
  readonly name: string
  readonly pids: () => number[]
  readonly run: (seconds: number) => Promise<Load>
}

export interface Sample {
  /** Units of the load per second. */
  readonly perSecond: number
  /** CPU seconds for one unit of the load. */
  readonly cpuPerUnit: number
}

export interface Sampled<L extends Lane> {
  readonly lane: L
  readonly samples: readonly Sample[]
  /** Why the lane was given up. */
  readonly failure: string | null
}

export interface Plan {
  readonly rounds: number
  readonly seconds: number
  /** How long each lane runs before it counts; by default as long as a sample, and two seconds at most. */
  readonly warmUpSeconds?: number | undefined
  readonly onSample: (lane: Lane, sample: Sample) => void
}

/** Warms up every lane, then takes `rounds` samples of each. A lane that fails is given up; the others continue. */
export async function sampleInTurns<L extends Lane>(
  lanes: readonly L[],
  { rounds, seconds, warmUpSeconds = Math.min(WARM_UP_S, seconds), onSample }: Plan,
): Promise<Sampled<L>[]> {
  const all = lanes.map((lane) => ({ lane, samples: [] as Sample[], failure: null as string | null }))
  for (let round = -1; round < rounds; round++) {
    // Another lane goes first each time, because the order may matter.
    const first = Math.max(round, 0) % Math.max(all.length, 1)
    for (const each of [...all.slice(first), ...all.slice(0, first)]) {
      if (each.failure !== null) continue
      try {
        const sample = await takeSample(each.lane, round < 0 ? warmUpSeconds : seconds)
        if (round < 0) continue
        each.samples.push(sample)
        onSample(each.lane, sample)
      } catch (error) {
        each.failure = error instanceof Error ? error.message : String(error)
      }
    }
  }
  return all
}

async function takeSample({ pids, run }: Lane, seconds: number): Promise<Sample> {
  const all = pids()
  const before = cpuSeconds(all)
  const load = await run(seconds)
  const cpu = cpuSeconds(all) - before
  // The CPU time of an ended process is lost, so the lane would look cheaper than it is.
  if (pids().length < all.length) throw new Error('one of its processes ended')
  return { perSecond: load.amount / load.seconds, cpuPerUnit: cpu / load.amount }
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const [low, high] = [sorted[Math.floor((sorted.length - 1) / 2)], sorted[Math.floor(sorted.length / 2)]]
  return low === undefined || high === undefined ? Number.NaN : (low + high) / 2
}
