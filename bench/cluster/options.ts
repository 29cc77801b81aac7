/** The flags of the bench. */
import { readFlags } from '../flags.ts'

export interface Options {
  /** How often nodes are restarted. */
  readonly starts: number
  readonly rounds: number
  readonly seconds: number
  /** Agents that lose their node. */
  readonly agents: number
  /** Tunnels in the directory. */
  readonly few: number
  readonly many: number
  /** Look-ups of each round. */
  readonly lookUps: number
  /** Simulated nodes that write at once. */
  readonly writers: number
  /** Names of rows; null means all. */
  readonly only: readonly string[] | null
  readonly nodeOptions: string
}

/** The default and the minimum of each flag. */
const flags = {
  starts: [3, 1],
  rounds: [5, 1],
  seconds: [3, 1],
  agents: [5000, 1],
  few: [1000, 100],
  many: [1_000_000, 100],
  'look-ups': [500, 1],
  writers: [4, 1],
} as const

/** Throws an `Error` that says what is wrong. */
export function readOptions(args: readonly string[], rowNames: readonly string[]): Options {
  const { counts, out: _, ...rest } = readFlags(args, flags, { rowNames })
  const { 'look-ups': lookUps, ...plain } = counts
  return { ...plain, lookUps, ...rest }
}
