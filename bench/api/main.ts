/**
 * Does the cost of an API call grow with the number of stored edges? On each store, two servers, one with few edges and
 * one with many, get the same calls in turns; the ratio of their medians is the answer.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type Platform, startPlatform } from '../../test/support/platform.ts'
import { startPostgres } from '../../test/support/postgres.ts'
import { loadEdges } from './load.ts'

/** How many times longer a call may take with many edges than with few. */
const BAR = 1.3

interface Side {
  readonly platform: Platform
  readonly ids: readonly string[]
  readonly backendId: string
  readonly policyId: string
}

const calls: Record<string, (side: Side, round: number) => Promise<unknown>> = {
  'GET by id': ({ platform, ids }) => platform.admin.get(`/edges/tls/${pick(ids)}`),
  'GET list page': ({ platform, ids }) => platform.admin.get(`/edges/tls?limit=100&before_id=${pick(ids)}`),
  'POST create': ({ platform, backendId, policyId }, round) =>
    platform.admin.create('/edges/tls', {
      hostports: [`new-${round}.example.com:443`],
      backend: { backend_id: backendId },
      ip_restriction: { ip_policy_ids: [policyId] },
    }),
  'PUT module': ({ platform, ids, policyId }) =>
    platform.admin.put(`/edges/tls/${pick(ids)}/ip_restriction`, { ip_policy_ids: [policyId] }),
}

export async function main(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      few: { type: 'string', default: '1000' },
      many: { type: 'string', default: '100000' },
      rounds: { type: 'string', default: '2000' },
    },
  })
  const sizes = { few: Number(values.few), many: Number(values.many) }
  const rounds = Number(values.rounds)
  console.log(`calls with ${sizes.few} and with ${sizes.many} TLS edges stored; ${rounds} of each, in turns\n`)
  console.log('| store | call | few: median | many: median | ratio | p99 few | p99 many |')
  console.log('|---|---|---|---|---|---|---|')

  await compare('SQLite', rounds, sizes, async () => {
    const folder = await mkdtemp(join(tmpdir(), 'postern-bench-'))
    return { url: `sqlite:${join(folder, 'postern.db')}`, drop: () => rm(folder, { recursive: true }) }
  })
  // As an operator would run it: every commit on disk.
  const postgres = await startPostgres({ durable: true })
  try {
    await compare('PostgreSQL', rounds, sizes, async () => ({
      url: await postgres.createDatabase(),
      drop: async () => {},
    }))
  } finally {
    await postgres.stop()
  }
}

type Database = () => Promise<{ url: string; drop: () => Promise<void> }>

async function compare(store: string, rounds: number, sizes: { few: number; many: number }, database: Database) {
  const made = [await database(), await database()]
  const [few, many] = [await fill(made[0]?.url ?? '', sizes.few), await fill(made[1]?.url ?? '', sizes.many)]
  for (const [name, call] of Object.entries(calls)) {
    const times: { few: number[]; many: number[] } = { few: [], many: [] }
    for (let round = 0; round < rounds; round++) {
      times.few.push(await timed(() => call(few, round)))
      times.many.push(await timed(() => call(many, round)))
    }
    // The first tenth warms up caches and compiled code.
    const [a, b] = [times.few, times.many].map((all) => all.slice(rounds / 10).sort((x, y) => x - y))
    if (!a || !b) continue
    const ratio = at(b, 0.5) / at(a, 0.5)
    const verdict = ratio <= BAR ? '' : ` (over ${BAR})`
    console.log(
      `| ${store} | ${name} | ${ms(at(a, 0.5))} | ${ms(at(b, 0.5))} | ${ratio.toFixed(2)}${verdict} | ${ms(at(a, 0.99))} | ${ms(at(b, 0.99))} |`,
    )
  }
  await Promise.all([few.platform.stop(), many.platform.stop()])
  for (const each of made) await each.drop()
}

async function fill(url: string, count: number): Promise<Side> {
  const platform = await startPlatform({ databaseUrl: url, flags: { 'log-level': 'silent' } })
  const policyId: string = (await platform.admin.create('/ip_policies')).id
  const backendId: string = (await platform.admin.create('/backends/tunnel_group', { labels: { app: 'bench' } })).id
  const { ids } = await loadEdges(platform.databaseUrl, count, { backendId, policyId })
  return { platform, ids, backendId, policyId }
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await work()
  return performance.now() - start
}

function pick(ids: readonly string[]): string {
  return ids[Math.floor(Math.random() * ids.length)] ?? ''
}

function at(sorted: readonly number[], share: number): number {
  return sorted[Math.floor(sorted.length * share)] ?? Number.NaN
}

function ms(value: number): string {
  return `${value.toFixed(2)} ms`
}
