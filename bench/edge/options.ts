/** The flags of the bench. */
import { readFlags } from '../flags.ts'

export interface Options {
  readonly rounds: number
  readonly seconds: number
  /** How many edges are stored on either side. */
  readonly few: number
  readonly many: number
  /** How many routes one edge has on either side. */
  readonly fewRoutes: number
  readonly manyRoutes: number
  /** Names of rows; null means all. */
  readonly only: readonly string[] | null
  /** Folder for `edge.json` and `edge.svg`. */
  readonly out: string | null
  readonly nodeOptions: string
}

/** The default and the minimum of each flag. */
const flags = {
  rounds: [9, 1],
  seconds: [3, 1],
  few: [10, 2],
  many: [100_000, 2],
  'few-routes': [10, 1],
  'many-routes': [1000, 1],
} as const

/** Throws an `Error` that says what is wrong. */
export function readOptions(args: readonly string[], rowNames: readonly string[]): Options {
  const { counts, ...rest } = readFlags(args, flags, { rowNames, hasOut: true })
  const { 'few-routes': fewRoutes, 'many-routes': manyRoutes, ...plain } = counts
  return { ...plain, fewRoutes, manyRoutes, ...rest }
}
