/** `npm run chaos`: puts real processes under load, mistreats them, and fails when an invariant breaks. */
import { randomInt } from 'node:crypto'
import { faultLine, isFlagFault } from '../../bench/flags.ts'
import { createDatabase, dropDatabase, startPostgres } from '../support/postgres.ts'
import type { Owner } from '../support/upstream.ts'
import { type ChaosFlags, type ChaosName, readChaosFlags, usage } from './flags.ts'
import { hostile } from './hostile.ts'
import { kill } from './kill.ts'
import { neighbours } from './neighbours.ts'
import { nodes } from './nodes.ts'
import {
  faultLines,
  hostileText,
  killText,
  neighboursText,
  nodesText,
  rollingText,
  stillText,
  stopsText,
  upgradeText,
} from './print.ts'
import { rolling } from './rolling.ts'
import { still } from './still.ts'
import { stops } from './stops.ts'
import { upgrade } from './upgrade.ts'

interface Outcome {
  readonly text: string
  /** Broken invariants. */
  readonly faults: readonly string[]
}

/** Random seeds are below this. */
const SEEDS = 1_000_000

const { name, store, logs, isPinned = false, counts } = flagsOrExit()
const progress = (line: string): void => console.log(line)

const runs: Readonly<Record<ChaosName, (owner: Owner, databaseUrl: string | undefined) => Promise<Outcome>>> = {
  async upgrade(owner, databaseUrl) {
    const report = await upgrade(owner, {
      ...{ rounds: 50, requests: 200_000, workers: 2, ...counts },
      ...(databaseUrl !== undefined && { databaseUrl }),
      progress,
    })
    return { text: upgradeText(report), faults: report.faults }
  },
  async kill(owner, databaseUrl) {
    const report = await kill(owner, {
      ...{ rounds: 100, workers: 2, ...counts },
      ...(databaseUrl !== undefined && { databaseUrl }),
      progress,
    })
    return { text: killText(report), faults: report.faults }
  },
  async nodes(owner) {
    const { seed = randomInt(SEEDS), minutes = 10, workers = 1 } = counts
    progress(`seed ${seed}`)
    const report = await nodes(owner, { forMs: minutes * 60_000, workers, seed, logs, progress })
    return { text: nodesText(report), faults: report.faults }
  },
  async rolling(owner) {
    const { seed = randomInt(SEEDS), rounds = 3, rate = 200, workers = 1 } = counts
    progress(`seed ${seed}`)
    const report = await rolling(owner, { rounds, perSecond: rate, seed, workers, progress })
    return { text: rollingText(report), faults: report.faults }
  },
  async stops(owner) {
    const { rounds = 3, requests = 20_000, rate = 100, workers = 2, seconds } = counts
    const report = await stops(owner, { rounds, requests, perSecond: rate, workers, seconds, progress })
    return { text: stopsText(report), faults: report.faults }
  },
  async still(owner) {
    const { seed = randomInt(SEEDS) } = counts
    progress(`seed ${seed}`)
    const report = await still(owner, { rounds: 50, seconds: 30, pairs: 3, workers: 1, ...counts, seed, progress })
    return { text: stillText(report), faults: report.faults }
  },
  async hostile(owner) {
    const report = await hostile(owner, { ...{ edges: 100_000, seconds: 20, workers: 1, ...counts }, progress })
    return { text: hostileText(report), faults: report.faults }
  },
  async neighbours(owner, databaseUrl) {
    const report = await neighbours(owner, {
      ...{ workers: 2, seconds: 600, times: isPinned ? 3 : 10, isPinned, ...counts },
      ...(databaseUrl !== undefined && { databaseUrl }),
      progress,
    })
    return { text: neighboursText(report), faults: report.faults }
  },
}

const closers: (() => unknown)[] = []
const owner: Owner = { after: (close) => closers.push(close) }
const closeAll = async (): Promise<void> => {
  for (const close of closers.splice(0).reverse()) await close()
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => void closeAll().finally(() => process.exit(1)))
}
try {
  const { text, faults } = await runs[name](owner, store === 'postgres' ? await newDatabase(owner) : undefined)
  console.log(text)
  if (faults.length > 0) {
    console.log(`\n${faults.length} faults:\n${faultLines(faults)}`)
    process.exitCode = 1
  }
} catch (error) {
  console.error(error)
  process.exitCode = 1
} finally {
  await closeAll()
}

function flagsOrExit(): ChaosFlags {
  try {
    const flags = readChaosFlags(process.argv.slice(2))
    if (flags) return flags
    console.log(usage)
    process.exit(0)
  } catch (error) {
    if (!isFlagFault(error)) throw error
    console.error(`${faultLine(error)}; npm run chaos -- --help says more`)
    process.exit(2)
  }
}

/** A database on the server that tests share, or on one started for this run. */
async function newDatabase(owner: Owner): Promise<string> {
  const shared = process.env.POSTERN_TEST_POSTGRES_URL
  if (shared) {
    const url = await createDatabase(shared)
    owner.after(() => dropDatabase(shared, url))
    return url
  }
  const postgres = await startPostgres()
  owner.after(() => postgres.stop())
  return postgres.createDatabase()
}
