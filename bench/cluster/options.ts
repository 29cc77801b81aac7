/** The flags of the bench. */
import { parseArgs } from 'node:util'
import { count, onlyRows } from '../flags.ts'

export interface Options {
  /** How often nodes are started anew. */
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

/** Throws an `Error` that says what is wrong. */
export function readOptions(args: readonly string[], rowNames: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      starts: { type: 'string', default: '3' },
      rounds: { type: 'string', default: '5' },
      seconds: { type: 'string', default: '3' },
      agents: { type: 'string', default: '5000' },
      few: { type: 'string', default: '1000' },
      many: { type: 'string', default: '1000000' },
      'look-ups': { type: 'string', default: '500' },
      writers: { type: 'string', default: '4' },
      only: { type: 'string' },
      'node-options': { type: 'string', default: '' },
    },
  })
  return {
    starts: count('starts', values.starts, 1),
    rounds: count('rounds', values.rounds, 1),
    seconds: count('seconds', values.seconds, 1),
    agents: count('agents', values.agents, 1),
    few: count('few', values.few, 100),
    many: count('many', values.many, 100),
    lookUps: count('look-ups', values['look-ups'], 1),
    writers: count('writers', values.writers, 1),
    only: onlyRows(values.only, rowNames),
    nodeOptions: values['node-options'],
  }
}
