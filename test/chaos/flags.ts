/** Parses the arguments after `npm run chaos --`. */
import { parseArgs } from 'node:util'
import { count, FlagFault } from '../../bench/flags.ts'

export const usage = `usage: npm run chaos -- upgrade [--rounds 50] [--requests 200000] [--store sqlite|postgres] [--workers 2]
       npm run chaos -- kill [--rounds 100] [--store sqlite|postgres] [--workers 2]
       npm run chaos -- nodes [--minutes 10] [--seed 1] [--workers 1] [--logs folder], with its own PostgreSQL
       npm run chaos -- rolling [--rounds 3] [--rate 200] [--seed 1] [--workers 1], with its own PostgreSQL
       npm run chaos -- stops [--rounds 3] [--requests 20000] [--rate 100] [--workers 2] [--seconds 10], with its own PostgreSQL
       npm run chaos -- still [--rounds 50] [--seconds 30] [--pairs 3] [--seed 1] [--workers 1], with its own PostgreSQL
       npm run chaos -- hostile [--edges 100000] [--seconds 20] [--workers 1], on SQLite
       npm run chaos -- neighbours [--seconds 600] [--store sqlite|postgres] [--workers 2] [--cpus]; with --cpus, server, bystanders
         and attackers have cores of their own`

const NAMES = ['upgrade', 'kill', 'nodes', 'rolling', 'stops', 'still', 'hostile', 'neighbours'] as const

/** Flags that take a whole number, each with its minimum. */
const LEAST = {
  rounds: 1,
  requests: 1,
  workers: 0,
  edges: 1,
  seconds: 0,
  minutes: 1,
  rate: 1,
  pairs: 1,
  seed: 0,
} as const

export type ChaosName = (typeof NAMES)[number]

export interface ChaosFlags {
  readonly name: ChaosName
  readonly store: 'sqlite' | 'postgres'
  readonly logs: string | undefined
  /** Whether `--cpus` was given. */
  readonly isPinned?: true
  /** The values of the number flags that were given. */
  readonly counts: Partial<Readonly<Record<keyof typeof LEAST, number>>>
}

/** Undefined when help was requested. Throws faults that `isFlagFault` recognises. */
export function readChaosFlags(args: readonly string[]): ChaosFlags | undefined {
  const flags = Object.keys(LEAST) as (keyof typeof LEAST)[] // it has no other keys
  const texts = Object.fromEntries([...flags, 'store', 'logs'].map((flag) => [flag, { type: 'string' } as const]))
  const help = { type: 'boolean', short: 'h' } as const
  const cpus = { type: 'boolean' } as const
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: { ...texts, cpus, help },
  })
  const given: Readonly<Record<string, string | boolean | undefined>> = values
  if (given.help === true) return undefined
  const [word = '', ...rest] = positionals
  const name = NAMES.find((each) => each === word)
  if (name === undefined) {
    throw new FlagFault(`${word === '' ? 'name a run:' : `unknown run ${word}; name one of`} ${NAMES.join(', ')}`)
  }
  if (rest.length > 0) throw new FlagFault(`one run at a time; remove ${rest.join(', ')}`)
  const { store = 'sqlite', logs } = given
  if (store !== 'sqlite' && store !== 'postgres') throw new FlagFault('--store must be sqlite or postgres')
  const counts = flags.flatMap((flag) => {
    const text = given[flag]
    return typeof text === 'string' ? [[flag, count(flag, text, LEAST[flag])] as const] : []
  })
  return {
    ...{ name, store, logs: typeof logs === 'string' ? logs : undefined, counts: Object.fromEntries(counts) },
    ...(given.cpus === true && { isPinned: true }),
  }
}
