/** The flags of the bench. */
import { readFlags } from '../flags.ts'

export interface Options {
  /** How often servers are restarted. */
  readonly starts: number
  readonly rounds: number
  readonly seconds: number
  readonly agents: number
  readonly edges: number
  /** Names of rows; null means all. */
  readonly only: readonly string[] | null
  readonly nodeOptions: string
}

/** The default and the minimum of each flag. */
const flags = {
  starts: [3, 1],
  rounds: [5, 1],
  seconds: [3, 1],
  agents: [5000, 2],
  edges: [100_000, 2],
} as const

/** Throws an `Error` that says what is wrong. */
export function readOptions(args: readonly string[], rowNames: readonly string[]): Options {
  const { counts, out: _, ...rest } = readFlags(args, flags, { rowNames })
  return { ...counts, ...rest }
}
