/** A PostgreSQL that follows another one by streaming replication, and can take its place. */
import { Client } from 'pg'
import { type Postgres, startPostgres } from './postgres.ts'
import { until } from './until.ts'

export interface Standby extends Postgres {
  /** Resolves when it has all that the primary has committed by now. */
  caughtUp(): Promise<void>
  /** Makes it accept writes. */
  promote(): Promise<void>
}

export async function startStandby(primary: Postgres): Promise<Standby> {
  const standby = await startPostgres({ durable: true, primary })
  return {
    ...standby,
    async caughtUp() {
      const at = await answerOf<string>(primary.url, 'select pg_current_wal_flush_lsn()::text')
      const isThere = `select pg_last_wal_replay_lsn() >= '${at}'::pg_lsn`
      await until('the standby has caught up', async () => (await answerOf(standby.url, isThere)) === true)
    },
    async promote() {
      if ((await answerOf(standby.url, 'select pg_promote()')) !== true) throw new Error('promotion failed')
    },
  }
}

/** The only column of the only row of an answer. */
async function answerOf<T = unknown>(url: string, sql: string): Promise<T | undefined> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    const { rows } = await client.query<Record<string, T>>(sql)
    return Object.values(rows[0] ?? {})[0]
  } finally {
    await client.end()
  }
}
