/** The result of a lane, compared with another one. */
import type { Sample } from './measure.ts'

export interface Result {
  readonly row: string
  readonly name: string
  /** Only lanes with the same link are comparable. */
  readonly link: string
  readonly isOurs: boolean
  readonly speed: number
  readonly speedUnit: string
  /** Null when it cannot be measured. */
  readonly cpu: number | null
  readonly cpuUnit: string
  /** The ratio to the median of `against`; null when that was not measured. */
  readonly ratio: number | null
  readonly against: string
  /** What the ratio must reach; null for no target. */
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
