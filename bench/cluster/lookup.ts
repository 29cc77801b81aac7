/** Does a look-up, or the death of a node, cost more when the directory is large? */
import { setImmediate } from 'node:timers/promises'
import { LookUps } from '../../src/control-plane/cluster/answer-lookups.ts'
import { SWEPT_TOGETHER } from '../../src/control-plane/cluster/node-lease.ts'
import { nodeAt } from '../../src/control-plane/store/testing/test-online-rows.ts'
import { createLog } from '../../src/lib/log/create-log.ts'
import { median } from '../measure.ts'
import { grouped, table } from '../table.ts'
import type { Database } from './database.ts'
import { type FilledStore, fillStore, placeOf, sealer } from './filled.ts'

/** How many times more it may cost with many tunnels than with few. */
const BAR = 1.3

/** Tunnels of the node that dies. */
const DYING = 1000

/** The node that looks up what others have. */
const ASKING = 'nd_asking'
const DEAD = 'nd_dead'

export interface LookUpOptions {
  readonly database: Database
  readonly few: number
  readonly many: number
  readonly rounds: number
  readonly lookUps: number
  readonly progress: (text: string) => void
}

interface Side {
  readonly filled: FilledStore
  readonly lookUps: LookUps
  readonly names: readonly string[]
  /** Milliseconds for each look-up, and for each removed row. */
  readonly times: number[]
  readonly swept: number[]
}

export interface LookUpResult {
  readonly tunnels: number
  readonly lookUpMs: number
  readonly sweepMs: number
}

export async function measureLookUp(options: LookUpOptions): Promise<LookUpResult[]> {
  const { few, many, rounds, progress } = options
  const sides: Side[] = []
  try {
    for (const tunnels of [few, many]) {
      progress(`lookup: storing ${grouped(tunnels)} tunnels`)
      sides.push(await raise(tunnels, options))
    }
    // The first round does not count: it fills caches and compiles code.
    for (let round = -1; round < rounds; round++) {
      for (const side of round % 2 === 0 ? sides : sides.toReversed()) {
        const [times, swept] = [await timeLookUps(side), await timeDeath(side)]
        if (round < 0) continue
        side.times.push(...times)
        side.swept.push(swept)
        progress(
          `lookup: ${grouped(side.filled.tunnels)}: ${median(times).toFixed(2)} ms, ${swept.toFixed(4)} ms a row`,
        )
      }
    }
    return sides.map(({ filled, times, swept }) => ({
      tunnels: filled.tunnels,
      lookUpMs: median(times),
      sweepMs: median(swept),
    }))
  } finally {
    for (const { filled } of sides) await filled.close()
  }
}

export function lookUpTable([few, many]: readonly LookUpResult[]): string {
  if (!few || !many) return ''
  const line = (what: string, figure: 'lookUpMs' | 'sweepMs', digits: number): string[] => {
    const ratio = many[figure] / few[figure]
    const [a, b] = [few, many].map((result) => `${result[figure].toFixed(digits)} ms`)
    return [what, a ?? '', b ?? '', ratio.toFixed(2), `at most ${BAR}: ${ratio <= BAR ? 'met' : 'MISSED'}`]
  }
  const head = ['what', ...[few, many].map(({ tunnels }) => `${grouped(tunnels)} tunnels: median`), 'ratio', 'bar']
  const lines = [line('a name is looked up', 'lookUpMs', 2), line("a dead node's row is removed", 'sweepMs', 4)]
  return `${table([head, ...lines])}\n`
}

async function raise(tunnels: number, { database, lookUps: count }: LookUpOptions): Promise<Side> {
  const filled = await fillStore(await database.create(), tunnels)
  const numbers = Array.from({ length: count }, (_, i) => Math.floor((i * tunnels) / count))
  await filled.seal([...new Set(numbers)])
  const log = createLog({ level: 'silent', format: 'json', destination: { write() {} } })
  const lookUps = new LookUps({ store: filled.store, sealer, nodeId: ASKING, log, introduce: async () => {} })
  return { filled, lookUps, names: shuffled(numbers).map(placeOf), times: [], swept: [] }
}

async function timeLookUps({ lookUps, names }: Side): Promise<number[]> {
  const times: number[] = []
  for (const name of names) {
    // A look-up during the delivery of the previous answer would be batched, and would wait for others.
    await setImmediate()
    const begun = performance.now()
    const found = await lookUps.addresses([name])
    times.push(performance.now() - begun)
    if (found.length !== 1) throw new Error(`${name} was not found`)
  }
  return times
}

/** Removes the rows of a dead node with some tunnels; returns milliseconds for each row. */
async function timeDeath({ filled: { store, add, tunnels } }: Side): Promise<number> {
  await store.write(({ online }) => online.renew(nodeAt(DEAD), 1))
  await add({ from: tunnels, to: tunnels + DYING, nodeId: DEAD })
  const begun = performance.now()
  let rows = 0
  for (;;) {
    const swept = await store.write(({ online }) => online.sweep(DEAD, SWEPT_TOGETHER))
    if (swept === 0) break
    rows += swept
  }
  const took = performance.now() - begun
  // Sessions, tunnels and holders; a place goes with its last holder.
  if (rows < 3 * DYING) throw new Error(`only ${rows} rows of a dead node were removed`)
  return took / rows
}

/** Shuffles into a fixed order that follows no index. */
function shuffled(numbers: readonly number[]): number[] {
  const step = 7919
  return numbers.map((_, i) => numbers[(i * step) % numbers.length] ?? 0)
}
