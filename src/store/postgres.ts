/** PostgreSQL through pg: a pool for queries and one kept connection that listens for changes. */
import { CompiledQuery, type Dialect, PostgresDialect, sql } from 'kysely'
import pg from 'pg'
import type { OpenedDialect, Trouble } from './dialect.ts'

const POOL_SIZE = 10
const CONNECT_TIMEOUT_MS = 5000
/** No statement of ours takes long, nor the time between two; a node that froze or lost power must not hold its locks. */
const STATEMENT_TIMEOUT_MS = 15_000
/** A notice can be lost with its connection; asking this often bounds how long that stays unseen. */
const POLL_MS = 5000
const RECONNECT_MS = 1000

const CHANNEL = 'postern_changes'
/** Any constant that nothing else in the database locks; "postern" in a phone's keys. */
const CHANGES_LOCK = 7_678_376

/**
 * Every query here reads few rows by their keys, in the order of an index. A plan that scans, hashes or sorts whole tables
 * for that is a misjudgement, made while statistics are missing, and its cost grows with what is stored.
 */
const FOLLOW_INDEXES = `select ${['seqscan', 'bitmapscan', 'hashjoin', 'mergejoin', 'sort']
  .map((way) => `set_config('enable_${way}', 'off', false)`)
  .join(', ')}`

/** Opens the database behind a `postgres://` URL; connections are made when first needed. */
export function openPostgres(url: string): OpenedDialect {
  const settings = {
    connectionString: url,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    statement_timeout: STATEMENT_TIMEOUT_MS,
    idle_in_transaction_session_timeout: STATEMENT_TIMEOUT_MS,
    keepAlive: true,
    application_name: 'postern',
    types: { getTypeParser },
  }
  const pool = new pg.Pool({ ...settings, max: POOL_SIZE })
  // A connection that dies is replaced by the pool. Without listeners it would end the process: the first is for one
  // that is idle, the second for one that is in use, amid a transaction.
  pool.on('error', () => {})
  pool.on('connect', (client) => client.on('error', () => {}))
  const dialect: Dialect = new PostgresDialect({
    pool,
    onCreateConnection: async (connection) => {
      await connection.executeQuery(CompiledQuery.raw(FOLLOW_INDEXES))
    },
  })

  return {
    dialect,
    facts: {
      name: 'postgres',
      binaryText: 'text collate "C"',
      autoIncrement: 'bigserial',
      locksRows: true,
      orderChanges: async (tx) => {
        // A revision is drawn before its transaction commits. Without the lock a reader could see 8 and, later, 7.
        await sql`select pg_advisory_xact_lock(${CHANGES_LOCK}), pg_notify(${CHANNEL}, '')`.execute(tx)
      },
      allowSlowReader: async (tx) => {
        await sql`set local idle_in_transaction_session_timeout = 0`.execute(tx)
      },
      classify,
    },
    listen: (heard) => listen(() => new pg.Client(settings), heard),
  }
}

/** Listens on one connection of its own, made anew whenever it breaks, with a slow poll underneath. */
async function listen(connect: () => pg.Client, heard: () => void): Promise<() => Promise<void>> {
  let stopped = false
  let client: pg.Client | undefined
  let retry: NodeJS.Timeout | undefined

  const open = async (): Promise<void> => {
    const next = connect()
    client = next
    let listens = false
    // Whatever breaks a connection also ends it, so its end is what counts.
    next.on('error', () => {})
    next.once('end', () => listens && later())
    next.on('notification', heard)
    try {
      await next.connect()
      await next.query(`listen ${CHANNEL}`)
      listens = true
    } catch (error) {
      void next.end().catch(() => {})
      throw error
    }
  }
  // What was announced in between is missed, so say once that something may have changed.
  const reopen = () => void open().then(heard, later)
  const later = () => {
    if (!stopped) retry = setTimeout(reopen, RECONNECT_MS)
  }

  await open()
  const poll = setInterval(heard, POLL_MS)
  poll.unref()
  return async () => {
    stopped = true
    clearInterval(poll)
    clearTimeout(retry)
    await client?.end().catch(() => {})
  }
}

/** 64-bit integers are revisions and counts here, which stay far below 2^53. */
function getTypeParser(oid: number, format?: 'text' | 'binary') {
  if (oid === pg.types.builtins.INT8) return Number
  return pg.types.getTypeParser(oid, format)
}

/** Codes, and classes of two characters, of https://www.postgresql.org/docs/current/errcodes-appendix.html */
const troubles = new Map<string, Trouble>([
  ['23505', 'taken'], // unique_violation
  ['23503', 'dangling'], // foreign_key_violation
  ['23001', 'dangling'], // restrict_violation
  ['40001', 'again'], // serialization_failure
  ['40P01', 'again'], // deadlock_detected
  ['25006', 'away'], // read_only_sql_transaction: a standby
  ['3D000', 'away'], // invalid_catalog_name: no such database, as while it is restored
  ['55000', 'away'], // object_not_in_prerequisite_state: the database takes no connections for now
  ['25P03', 'away'], // idle_in_transaction_session_timeout
  ['08', 'away'], // connection exception
  ['53', 'away'], // insufficient resources: disk, memory, connections
  ['57', 'away'], // operator intervention: starting, stopping, crashing, our statement timeout
  ['58', 'away'], // system error, such as i/o
  ['ECONNREFUSED', 'away'],
  ['ECONNRESET', 'away'],
  ['ENOTFOUND', 'away'],
  ['EAI_AGAIN', 'away'],
  ['EHOSTUNREACH', 'away'],
  ['ENETUNREACH', 'away'],
  ['ETIMEDOUT', 'away'],
  ['EPIPE', 'away'],
])

function classify(error: unknown): Trouble | undefined {
  if (!(error instanceof Error)) return undefined
  if ('code' in error && typeof error.code === 'string') {
    return troubles.get(error.code) ?? troubles.get(error.code.slice(0, 2))
  }
  // pg gives no code to a connection that ends or does not come about.
  return /connection terminated|timeout exceeded when trying to connect|timeout expired|not queryable/i.test(
    error.message,
  )
    ? 'away'
    : undefined
}
