/** PostgreSQL connections with time limits: a statement that exceeds its limit fails, and its connection is closed. */
import type { PostgresPool, PostgresPoolClient } from 'kysely'
import pg from 'pg'
import { Overdue, type StoreLimits } from './limits.ts'

/** How long closing a connection waits for the database, in milliseconds. */
const GOODBYE_MS = 1000

/** A pool in the form that Kysely expects; `prepare` runs on each connection before its first use. */
export function limitedPool(
  config: pg.PoolConfig,
  { connectionMs, statementMs }: Pick<StoreLimits, 'connectionMs' | 'statementMs'>,
  prepare: string,
): PostgresPool {
  const open = new Set<pg.Client>()
  const known = new WeakMap<pg.PoolClient, PostgresPoolClient>()
  // The pool waits for the promise, although its type does not say so.
  const onConnect = (client: pg.ClientBase): unknown => limitedQuery(client as pg.Client, connectionMs, prepare)
  const pool = new pg.Pool({
    ...config,
    connectionTimeoutMillis: connectionMs,
    // Not Kysely's own hook: a connection whose first statement fails there never returns to the pool.
    onConnect,
  })
  // The pool replaces a broken connection. Without this listener its error would end the process.
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

/** The part of a connection that Kysely uses; once the connection is broken, every statement fails with the same error. */
function limitedClient(client: pg.PoolClient, statementMs: number): PostgresPoolClient {
  let broken: Error | undefined
  // The first error says why; later ones only that the connection is gone. Without a listener it would end the process too.
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
    // Kysely's type also has an overload for cursors, which nothing here uses.
    query: query as unknown as PostgresPoolClient['query'],
    release: () => client.release(broken),
  }
}

/**
 * Runs one statement. When it is overdue its connection is closed: pg's own `query_timeout` would hand the connection,
 * still busy, to the next caller.
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

/** Ends a connection properly, or destroys it when the database does not answer. */
export async function endClient(client: pg.Client): Promise<void> {
  const cut = setTimeout(() => client.connection.stream.destroy(), GOODBYE_MS)
  await client.end().catch(() => {})
  clearTimeout(cut)
}

/** Recognised by its message, because pg gives timeouts no code. */
function isTimeout(error: unknown): boolean {
  return error instanceof Error && /timeout (exceeded|expired)|connection timeout/i.test(error.message)
}
