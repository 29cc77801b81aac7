/** Prolongs the lease of one node over a connection of its own, without the rest of the store. */
import { type StoreLimits, storeLimits } from './limits.ts'
import { limitedPool } from './postgres-pool.ts'

const NOW_MS = 'cast(extract(epoch from clock_timestamp()) * 1000 as bigint)'

/** One that has expired is not prolonged: others may have taken what the node had, which its process must find out first. */
const PROLONG = `update nodes set expires_at = ${NOW_MS} + $2 where id = $1 and expires_at > ${NOW_MS}`

/** Less than a lease: after a lost connection, another one is in time. */
const limits: Pick<StoreLimits, 'connectionMs' | 'statementMs'> = {
  connectionMs: storeLimits.connectionMs / 2,
  statementMs: storeLimits.statementMs / 4,
}

export function keepRow(url: string, { nodeId, leaseMs }: { readonly nodeId: string; readonly leaseMs: number }) {
  const config = { connectionString: url, max: 1, statement_timeout: limits.statementMs, application_name: 'postern' }
  const pool = limitedPool({ ...config, keepAlive: true }, limits, 'select 1')
  return {
    async prolong(): Promise<void> {
      const client = await pool.connect()
      try {
        await client.query(PROLONG, [nodeId, leaseMs])
      } finally {
        client.release()
      }
    },
  }
}
