/** `npm run chaos`: real processes under load, and what must hold while they are ill treated. Fails when it does not. */
import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import { createDatabase, dropDatabase, startPostgres } from '../support/postgres.ts'
import type { Owner } from '../support/upstream.ts'
import { hostile } from './hostile.ts'
import { kill } from './kill.ts'
import { nodes } from './nodes.ts'
import { faultLines, hostileText, killText, nodesText, rollingText, upgradeText } from './print.ts'
import { rolling } from './rolling.ts'
import { upgrade } from './upgrade.ts'

const usage = `usage: npm run chaos -- upgrade [--rounds 50] [--requests 200000] [--store sqlite|postgres] [--workers 2]
       npm run chaos -- kill [--rounds 100] [--store sqlite|postgres] [--workers 2]
       npm run chaos -- nodes [--minutes 10] [--seed 1] [--workers 1] [--logs folder], on a PostgreSQL of its own
       npm run chaos -- rolling [--rounds 3] [--rate 200] [--seed 1] [--workers 1], on a PostgreSQL of its own
       npm run chaos -- hostile [--edges 100000] [--seconds 20] [--workers 1], on SQLite`

interface Outcome {
  readonly text: string
  /** What did not hold. */
  readonly faults: readonly string[]
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: 'string' },
    requests: { type: 'string', default: '200000' },
    store: { type: 'string', default: 'sqlite' },
    workers: { type: 'string' },
    edges: { type: 'string', default: '100000' },
    seconds: { type: 'string', default: '20' },
    minutes: { type: 'string', default: '10' },
    rate: { type: 'string', default: '200' },
    seed: { type: 'string' },
    logs: { type: 'string' },
  },
})
const progress = (line: string): void => console.log(line)

const runs: Readonly<Record<string, (owner: Owner, databaseUrl: string | undefined) => Promise<Outcome>>> = {
  async upgrade(owner, databaseUrl) {
    const report = await upgrade(owner, {
      ...{
        rounds: Number(values.rounds ?? 50),
        requests: Number(values.requests),
        workers: Number(values.workers ?? 2),
      },
      ...(databaseUrl !== undefined && { databaseUrl }),
      progress,
    })
    return { text: upgradeText(report), faults: report.faults }
  },
  async kill(owner, databaseUrl) {
    const report = await kill(owner, {
      ...{ rounds: Number(values.rounds ?? 100), workers: Number(values.workers ?? 2) },
      ...(databaseUrl !== undefined && { databaseUrl }),
      progress,
    })
    return { text: killText(report), faults: report.faults }
  },
  async nodes(owner) {
    const seed = Number(values.seed ?? randomInt(1_000_000))
    progress(`seed ${seed}`)
    const sizes = { forMs: Number(values.minutes) * 60_000, workers: Number(values.workers ?? 1) }
    const report = await nodes(owner, { ...sizes, seed, logs: values.logs, progress })
    return { text: nodesText(report), faults: report.faults }
  },
  async rolling(owner) {
    const seed = Number(values.seed ?? randomInt(1_000_000))
    progress(`seed ${seed}`)
    const sizes = { rounds: Number(values.rounds ?? 3), perSecond: Number(values.rate) }
    const report = await rolling(owner, { ...sizes, seed, workers: Number(values.workers ?? 1), progress })
    return { text: rollingText(report), faults: report.faults }
  },
  async hostile(owner) {
    const { edges, seconds, workers = '1' } = values
    const sizes = { edges: Number(edges), seconds: Number(seconds), workers: Number(workers) }
    const report = await hostile(owner, { ...sizes, progress })
    return { text: hostileText(report), faults: report.faults }
  },
}

const run = runs[positionals[0] ?? '']
if (!run || !['sqlite', 'postgres'].includes(values.store)) {
  console.error(usage)
  process.exit(2)
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
  const { text, faults } = await run(owner, values.store === 'postgres' ? await newDatabase(owner) : undefined)
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

/** On the server that tests share, or on one of this run alone. */
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
