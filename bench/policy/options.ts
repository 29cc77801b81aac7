/** The flags of the bench. */
import { readFlags } from '../flags.ts'

export interface Options {
  /** How often the servers are restarted: two starts of the same code differ by more than what is measured. */
  readonly starts: number
  readonly rounds: number
  readonly seconds: number
  /** How many edges are stored on either side. */
  readonly few: number
  readonly many: number
  /** Names of rows; null means all. */
  readonly only: readonly string[] | null
  readonly nodeOptions: string
}

/** The default and the minimum of each flag. */
const flags = {
  starts: [5, 1],
  rounds: [5, 1],
  seconds: [2, 1],
  // One bare edge, and one with what is measured.
  few: [2, 2],
  many: [10_000, 2],
} as const

/** Throws an `Error` that says what is wrong. */
export function readOptions(args: readonly string[], rowNames: readonly string[]): Options {
  const { counts, out: _, ...rest } = readFlags(args, flags, { rowNames })
  return { ...counts, ...rest }
}
