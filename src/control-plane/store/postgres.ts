/** PostgreSQL through pg: a pool for queries, and one connection that listens for changes. */
import { type Dialect, PostgresDialect, type SqlBool, sql } from 'kysely'
import pg from 'pg'
import type { OpenedDialect, Trouble } from './dialect.ts'
import { type StoreLimits, storeLimits } from './limits.ts'
import { hearNotices } from './postgres-notices.ts'
import { limitedPool } from './postgres-pool.ts'

const POOL_SIZE = 10
/** Migrations run one after the other; Kysely may need a second connection meanwhile. */
const MIGRATION_POOL_SIZE = 2

/** How long a connection is idle before the kernel probes the other side, in milliseconds. */
const KEEP_ALIVE_MS = 10_000

/**
 * The database's own time limits, as a part of ours: it gives up a statement a little earlier, so that its error still
 * arrives. Then the connection stays usable, and the cause is known.
 */
const SERVER_SHARE = 0.9

const CHANNEL = 'postern_changes'
/** The number of our advisory lock, which nothing else in the database may use: "postern" on a phone's keypad. */
const CHANGES_LOCK = 7_678_376

/**
 * Every query here reads a few rows by key, in the order of an index. Without statistics PostgreSQL may choose a plan
 * that scans, hashes or sorts whole tables, and its cost would grow with the database. So these plans are turned off.
 */
const FOLLOW_INDEXES = `select ${['seqscan', 'bitmapscan', 'hashjoin', 'mergejoin', 'sort', 'incremental_sort']
  .map((way) => `set_config('enable_${way}', 'off', false)`)
  .join(', ')}`

/**
 * Longer texts are read as `json`, which takes PostgreSQL half as long again: an array of `jsonb` may have at most 256 MiB, and
 * a character up to three bytes.
 */
const MAX_JSONB_CHARACTERS = 32 * 1024 * 1024

/** Opens the database at a `postgres://` URL; connections are made when first needed. */
export function openPostgres(url: string, limits: StoreLimits = storeLimits): OpenedDialect {
  const settings = (statementMs: number, lockMs: number) => ({
    connectionString: url,
    connectionTimeoutMillis: limits.connectionMs,
    // Enforced by the database: a node that froze or lost power must not keep its locks.
    statement_timeout: Math.ceil(statementMs * SERVER_SHARE),
    lock_timeout: Math.ceil(lockMs * SERVER_SHARE),
    idle_in_transaction_session_timeout: statementMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    application_name: 'postern',
    types: { getTypeParser },
  })
  const dialect = (size: number, statementMs: number, lockMs: number): Dialect =>
    new PostgresDialect({
      pool: limitedPool(
        { ...settings(statementMs, lockMs), max: size },
        { connectionMs: limits.connectionMs, statementMs },
        FOLLOW_INDEXES,
      ),
    })

  return {
    dialect: dialect(POOL_SIZE, limits.statementMs, limits.connectionMs),
    migrating: dialect(MIGRATION_POOL_SIZE, limits.migrationMs, limits.migrationMs),
    facts: {
      name: 'postgres',
      binaryText: 'text collate "C"',
      autoIncrement: 'bigserial',
      // Not `now()`, which stands still during a transaction.
      nowMs: sql<number>`cast(extract(epoch from clock_timestamp()) * 1000 as bigint)`,
      server: sql<string>`cast(pg_postmaster_start_time() as text)`,
      eachOf: (json) =>
        json.length > MAX_JSONB_CHARACTERS
          ? sql`json_array_elements(cast(${json} as json)) as each(value)`
          : sql`jsonb_array_elements(cast(${json} as jsonb)) as each(value)`,
      isAmong: (column, values) => sql<SqlBool>`${sql.ref(column)} = any(cast(${values} as text[]))`,
      locksRows: true,
      orderChanges: async (tx) => {
        // A revision is assigned before its transaction commits. Without the lock a reader could see 8 and only later 7.
        await sql`select pg_advisory_xact_lock(${CHANGES_LOCK}), pg_notify(${CHANNEL}, '')`.execute(tx)
      },
      allowSlowReader: async (tx) => {
        await sql`set local idle_in_transaction_session_timeout = 0`.execute(tx)
      },
      classify,
    },
    listen: (heard) =>
      hearNotices(
        {
          connect: () => new pg.Client(settings(limits.statementMs, limits.connectionMs)),
          channel: CHANNEL,
          limits,
        },
        heard,
      ),
    close: async () => {},
  }
}

/** Reads 64-bit integers as numbers: they are revisions, counts and times, which stay far below 2^53. */
function getTypeParser(oid: number, format?: 'text' | 'binary') {
  if (oid === pg.types.builtins.INT8) return Number
  return pg.types.getTypeParser(oid, format)
}

/** Codes, or their two-character classes, from https://www.postgresql.org/docs/current/errcodes-appendix.html */
const troubles = new Map<string, Trouble>([
  ['23505', 'taken'], // unique_violation
  ['23503', 'dangling'], // foreign_key_violation
  ['23001', 'dangling'], // restrict_violation
  ['40001', 'again'], // serialization_failure
  ['40P01', 'again'], // deadlock_detected
  ['40003', 'away'], // statement_completion_unknown
  ['25006', 'away'], // read_only_sql_transaction: a standby
  ['3D000', 'away'], // invalid_catalog_name: no such database, as while it is restored
  ['55000', 'away'], // object_not_in_prerequisite_state: the database takes no connections for now
  ['25P03', 'away'], // idle_in_transaction_session_timeout
  ['55P03', 'away'], // lock_not_available: our lock timeout
  ['08', 'away'], // connection exception
  ['53100', 'full'], // disk_full
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
  // pg gives no code to errors about a connection that ended or could not be made.
  return /connection terminated|timeout exceeded when trying to connect|timeout expired|not queryable/i.test(
    error.message,
  )
    ? 'away'
    : undefined
}
