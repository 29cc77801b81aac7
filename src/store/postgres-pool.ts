/** Connections to PostgreSQL on which nothing waits for ever: a statement that is overdue takes its connection along. */
import type { PostgresPool, PostgresPoolClient } from 'kysely'
import pg from 'pg'
import { Overdue, type StoreLimits } from './limits.ts'

/** How long a connection that ends waits for the other side, in milliseconds. */
const GOODBYE_MS = 1000

export interface LimitedPoolOptions {
  readonly config: pg.PoolConfig
  readonly limits: Pick<StoreLimits, 'connectionMs' | 'statementMs'>
  /** Runs on each connection before its first use. */
  readonly prepare: string
}

/** A pool as Kysely wants it. */
export function limitedPool({ config, limits, prepare }: LimitedPoolOptions): PostgresPool {
  const { connectionMs, statementMs } = limits
  const open = new Set<pg.Client>()
  const known = new WeakMap<pg.PoolClient, PostgresPoolClient>()
  // The pool waits for it, which its type does not say.
  const onConnect = (client: pg.ClientBase): unknown => limitedQuery(client as pg.Client, connectionMs, prepare)
  const pool = new pg.Pool({
    ...config,
    connectionTimeoutMillis: connectionMs,
    // Not Kysely's own hook: a connection whose first statement fails there never returns to the pool.
    onConnect,
  })
  // A connection that dies is replaced by the pool. Without a listener it would end the process.
  pool.on('error', () => {})
  pool.on('connect', (client) => {
    open.add(client)
    client.once('end', () => open.delete(client))
  })

  return {
    options: pool.options,
    async connect() {
      const client = await pool.connect().catch((error: unknown) => {
        throw isTimeout(error) ? new Overdue('connecting to the database', connectionMs, { cause: error }) : error
      })
      const limited = known.get(client) ?? limitedClient(client, statementMs)
      known.set(client, limited)
      return limited
    },
    async end() {
      await pool.end()
      await Promise.all([...open].map(endClient))
    },
  }
}

/** What Kysely uses of a connection; after the first failure of the connection itself every statement repeats it. */
function limitedClient(client: pg.PoolClient, statementMs: number): PostgresPoolClient {
  let broken: Error | undefined
  // The first error says why; later ones only that the connection is gone. Without a listener it would end the process.
  client.on('error', (error) => {
    broken ??= error
  })
  const query = async (sql: string, parameters?: readonly unknown[]) => {
    if (broken) throw broken
    try {
      return await limitedQuery(client, statementMs, sql, parameters)
    } catch (error) {
      if (error instanceof Overdue) broken = error
      throw error
    }
  }
  return {
    // Kysely's type also has a form for cursors, which nothing here uses.
    query: query as unknown as PostgresPoolClient['query'],
    release: () => client.release(broken),
  }
}

/**
 * Runs one statement. When it is overdue its connection is cut: pg's own `query_timeout` would leave the connection busy
 * and hand it to the next one who asks.
 */
export async function limitedQuery(
  client: pg.Client,
  limitMs: number,
  sql: string,
  parameters?: readonly unknown[],
): Promise<pg.QueryResult> {
  let overdue: Overdue | undefined
  const timer = setTimeout(() => {
    overdue = new Overdue('a statement', limitMs)
    client.connection.stream.destroy()
  }, limitMs)
  try {
    return await client.query(sql, parameters ? [...parameters] : undefined)
  } catch (error) {
    throw overdue ?? error
  } finally {
    clearTimeout(timer)
  }
}

/** Ends a connection in order, or cuts it when the other side says nothing. */
export async function endClient(client: pg.Client): Promise<void> {
  const cut = setTimeout(() => client.connection.stream.destroy(), GOODBYE_MS)
  await client.end().catch(() => {})
  clearTimeout(cut)
}

/** pg gives these no code. */
function isTimeout(error: unknown): boolean {
  return error instanceof Error && /timeout (exceeded|expired)|connection timeout/i.test(error.message)
}
