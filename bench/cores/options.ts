/** The flags of the bench. */
import { parseArgs } from 'node:util'
import { count, onlyRows } from '../flags.ts'

export interface Options {
  /** How often servers are started anew. */
  readonly starts: number
  readonly rounds: number
  readonly seconds: number
  readonly agents: number
  readonly edges: number
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
      edges: { type: 'string', default: '100000' },
      only: { type: 'string' },
      'node-options': { type: 'string', default: '' },
    },
  })
  return {
    starts: count('starts', values.starts, 1),
    rounds: count('rounds', values.rounds, 1),
    seconds: count('seconds', values.seconds, 1),
    agents: count('agents', values.agents, 2),
    edges: count('edges', values.edges, 2),
    only: onlyRows(values.only, rowNames),
    nodeOptions: values['node-options'],
  }
}
