/** Kills a server during writes, many times, and checks after each restart that no acknowledged write was lost. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import { Client } from 'pg'
import { ApiClient, type Json } from '../support/api-client.ts'
import type { Postgres } from '../support/postgres.ts'
import { type ServerProcess, serve } from '../support/server-process.ts'
import { until } from '../support/until.ts'
import { Memory } from './memory.ts'
import { type Tally, write } from './writer.ts'

export interface CrashOptions {
  readonly rounds: number
  /** If undefined, the server keeps its data in SQLite. Otherwise, every third round kills PostgreSQL instead. */
  readonly postgres?: Postgres
  readonly progress?: (line: string) => void
}

export interface CrashReport extends Tally {
  readonly serverKills: number
  readonly databaseKills: number
  /** Edges compared with what was acknowledged, over all rounds. */
  readonly compared: number
}

const WRITERS = 6
/** The kill comes at a random moment within this many milliseconds of the start, or in round 1 of the first answer. */
const KILL_WITHIN_MS = 300
const PROGRESS_EVERY = 10
const API_KEY = 'crash_test_api_key_of_the_first_admin'
const env = { POSTERN_BOOTSTRAP_API_KEY: API_KEY }

export async function crash({ rounds, postgres, progress = () => {} }: CrashOptions): Promise<CrashReport> {
  const dataDir = await mkdtemp(join(tmpdir(), 'postern-crash-'))
  const databaseUrl = postgres ? await postgres.createDatabase() : `sqlite:${join(dataDir, 'postern.db')}`
  const start = () => serve({ dataDir, databaseUrl, env, flags: { 'log-level': 'error' } })
  const tally = { acknowledged: 0, unanswered: 0, refused: 0 }
  const report = { serverKills: 0, databaseKills: 0, compared: 0 }
  let server = await start()
  try {
    const policies = await makePolicies(new ApiClient(server.url, API_KEY))
    const memories = Array.from({ length: WRITERS }, (_, i) => new Memory(`writer ${i}`))
    for (let round = 1; round <= rounds; round++) {
      const api = new ApiClient(server.url, API_KEY)
      const stopped = new AbortController()
      const writing = Promise.all(
        memories.map((memory) => write({ api, memory, policies, tally, signal: stopped.signal })),
      )
      const moment = async () => {
        // Later rounds may end before any answer; with no acknowledged write at all there would be nothing to compare.
        if (round === 1) await until('a write was acknowledged', () => tally.acknowledged > 0)
        await delay(Math.random() * KILL_WITHIN_MS)
      }
      // A writer that fails an assertion ends the round at once.
      await Promise.race([writing, moment()])
      if (postgres && round % 3 === 0) {
        await killDatabase(postgres)
        report.databaseKills++
        stopped.abort()
        await writing
        await ready(server)
      } else {
        server.kill('SIGKILL')
        report.serverKills++
        stopped.abort()
        await Promise.all([writing, server.ended])
        server = await start()
      }
      report.compared += await compare(new ApiClient(server.url, API_KEY), memories, policies)
      if (!postgres) checkFile(join(dataDir, 'postern.db'))
      if (round % PROGRESS_EVERY === 0) progress(line(round, rounds, { ...tally, ...report }))
    }
    await server.stop()
    return { ...tally, ...report }
  } finally {
    server.kill('SIGKILL')
    await server.ended
    await rm(dataDir, { recursive: true, force: true })
  }
}

/** Kills a server at random moments of its very first start; the next start must find nothing half done. */
export async function crashFirstStarts({ rounds, withinMs }: { rounds: number; withinMs: number }): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    const dataDir = await mkdtemp(join(tmpdir(), 'postern-crash-'))
    const dying = new AbortController()
    const first = serve({ dataDir, env, signal: dying.signal })
    await Promise.race([first, delay(Math.random() * withinMs)])
    dying.abort()
    await first.then((server) => server.ended).catch(() => {})
    const server = await serve({ dataDir, env })
    const { keys } = await new ApiClient(server.url, API_KEY).get('/api_keys')
    assert.equal(keys.length, 1, 'one first user, with one key')
    await server.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
}

async function makePolicies(api: ApiClient): Promise<string[]> {
  const made = await Promise.all([1, 2, 3].map((n) => api.create('/ip_policies', { description: `policy ${n}` })))
  return made.map(({ id }) => id)
}

/** Kills a background process, so that PostgreSQL discards its memory and recovers from its log, as after a crash. */
async function killDatabase(postgres: Postgres): Promise<void> {
  const client = new Client({ connectionString: postgres.url })
  client.on('error', () => {})
  await client.connect()
  const { rows } = await client.query(`select pid from pg_stat_activity where backend_type = 'checkpointer'`)
  process.kill(rows[0].pid, 'SIGKILL')
  await client.end().catch(() => {})
}

async function ready(server: ServerProcess): Promise<void> {
  // PostgreSQL takes a moment to notice the kill, so one ready answer is not enough.
  for (let inRow = 0; inRow < 5; ) {
    const { status } = await fetch(`${server.url}/readyz`)
    inRow = status === 200 ? inRow + 1 : 0
    await delay(20)
  }
}

/** Compares all edges with what was acknowledged to the writers, and updates the writers to what exists. */
async function compare(api: ApiClient, memories: readonly Memory[], policies: readonly string[]): Promise<number> {
  const found = new Map<string, Json>()
  for (let next: string | null = '/edges/tcp'; next !== null; ) {
    const page: { tcp_edges: { id: string }[]; next_page_uri: string | null } = await api.get(next)
    for (const edge of page.tcp_edges) found.set(edge.id, edge)
    next = page.next_page_uri
  }
  for (const memory of memories) memory.settle(found)
  assert.deepEqual([...found.keys()], [], 'these were never created, or were deleted')
  for (const id of policies) await api.get(`/ip_policies/${id}`)
  return memories.reduce((sum, memory) => sum + memory.size, 0)
}

function checkFile(path: string): void {
  const db = new DatabaseSync(path, { readOnly: true, timeout: 5000 })
  assert.deepEqual(Object.values(db.prepare('pragma integrity_check').get() ?? {}), ['ok'])
  assert.deepEqual(db.prepare('pragma foreign_key_check').all(), [])
  db.close()
}

function line(round: number, rounds: number, { acknowledged, unanswered, compared }: CrashReport): string {
  return `round ${round} of ${rounds}: ${acknowledged} writes acknowledged, ${unanswered} cut off, ${compared} edges compared`
}
