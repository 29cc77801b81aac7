/** The flags of the bench. */
import { parseArgs } from 'node:util'
import { count, onlyRows } from '../flags.ts'

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

/** Throws an `Error` that says what is wrong. */
export function readOptions(args: readonly string[], rowNames: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      rounds: { type: 'string', default: '9' },
      seconds: { type: 'string', default: '3' },
      few: { type: 'string', default: '10' },
      many: { type: 'string', default: '100000' },
      'few-routes': { type: 'string', default: '10' },
      'many-routes': { type: 'string', default: '1000' },
      only: { type: 'string' },
      out: { type: 'string' },
      'node-options': { type: 'string', default: '' },
    },
  })
  return {
    rounds: count('rounds', values.rounds, 1),
    seconds: count('seconds', values.seconds, 1),
    few: count('few', values.few, 2),
    many: count('many', values.many, 2),
    fewRoutes: count('few-routes', values['few-routes'], 1),
    manyRoutes: count('many-routes', values['many-routes'], 1),
    only: onlyRows(values.only, rowNames),
    out: values.out ?? null,
    nodeOptions: values['node-options'],
  }
}
