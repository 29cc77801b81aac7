/** The flags of the bench. */
import { parseArgs } from 'node:util'
import { count, onlyRows } from '../flags.ts'

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

/** Throws an `Error` that says what is wrong. */
export function readOptions(args: readonly string[], rowNames: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      starts: { type: 'string', default: '5' },
      rounds: { type: 'string', default: '5' },
      seconds: { type: 'string', default: '2' },
      few: { type: 'string', default: '2' },
      many: { type: 'string', default: '10000' },
      only: { type: 'string' },
      'node-options': { type: 'string', default: '' },
    },
  })
  return {
    starts: count('starts', values.starts, 1),
    rounds: count('rounds', values.rounds, 1),
    seconds: count('seconds', values.seconds, 1),
    // One edge without and one with what is measured.
    few: count('few', values.few, 2),
    many: count('many', values.many, 2),
    only: onlyRows(values.only, rowNames),
    nodeOptions: values['node-options'],
  }
}
