/** What a lane came to, beside whom it is held against. */
import type { Sample } from './measure.ts'

export interface Result {
  readonly row: string
  readonly name: string
  /** Only like is compared with like. */
  readonly link: string
  readonly isOurs: boolean
  readonly speed: number
  readonly speedUnit: string
  /** Null when nothing of it can be counted. */
  readonly cpu: number | null
  readonly cpuUnit: string
  /** To the median of whom it is held against; null when that one was not measured. */
  readonly ratio: number | null
  readonly against: string
  /** What the ratio must reach; null when there is nothing to reach. */
  readonly bar: number | null
  readonly samples: readonly Sample[]
}

/** How speed and cost are shown. */
export interface Unit {
  readonly speed: string
  readonly speedPer: number
  readonly cpu: string
  readonly cpuPer: number
}

const HUNDRED_THOUSAND = 1e5

export const requests: Unit = { speed: 'requests/s', speedPer: 1, cpu: 's/100k', cpuPer: HUNDRED_THOUSAND }
