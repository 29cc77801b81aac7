/** Kysely's driver for the SQLite thread: decides when a query or transaction may use the one connection, and for how long. */
import { setTimeout as pause } from 'node:timers/promises'
import type { CompiledQuery, DatabaseConnection, Driver, QueryResult } from 'kysely'
import { Overdue, type StoreLimits, within } from './limits.ts'
import type { SqliteConnection, Thread } from './sqlite-connection.ts'
import type { ThreadAnswer } from './sqlite-thread.ts'
import type { SqliteTurns } from './sqlite-turns.ts'

/** The first and the longest pause before a locked database is tried again, in milliseconds. */
const BUSY_PAUSE_MS = { first: 1, last: 50 }

export interface SqliteDriverOptions {
  readonly connection: SqliteConnection
  readonly turns: SqliteTurns
  readonly limits: Pick<StoreLimits, 'connectionMs' | 'statementMs'>
}

export function sqliteThreadDriver(options: SqliteDriverOptions): Driver {
  return {
    init: async () => {},
    acquireConnection: async () => new Lease(options),
    // A transaction that only reads takes no lock: others may write meanwhile, and it does not see their changes.
    beginTransaction: (lease, { accessMode }) =>
      asLease(lease).begin(accessMode === 'read only' ? 'begin deferred' : 'begin'),
    commitTransaction: (lease) => asLease(lease).commit(),
    rollbackTransaction: (lease) => asLease(lease).rollback(),
    releaseConnection: async () => {},
    // The thread is shared; whoever opened it closes it.
    destroy: async () => {},
  }
}

/** Kysely passes back the object that `acquireConnection` returned. */
function asLease(connection: DatabaseConnection): Lease {
  return connection as Lease
}

/** The connection as one query or one transaction sees it. */
class Lease implements DatabaseConnection {
  readonly #options: SqliteDriverOptions
  /** The thread of the open transaction. */
  #thread: Thread | null = null
  /** A statement of the transaction that exceeded its limit and has not been answered yet. */
  #late: { readonly error: Overdue; readonly answer: Promise<unknown> } | null = null

  constructor(options: SqliteDriverOptions) {
    this.#options = options
  }

  async executeQuery<R>({ sql, parameters }: CompiledQuery): Promise<QueryResult<R>> {
    if (this.#late) throw this.#late.error
    const answer = this.#thread ? await this.#ask(sql, parameters) : await this.#askAlone(sql, parameters)
    return { rows: rowsOf<R>(answer), numAffectedRows: BigInt(answer.changes) }
  }

  /** Nothing here streams; one chunk satisfies the interface. */
  async *streamQuery<R>(query: CompiledQuery): AsyncIterableIterator<QueryResult<R>> {
    yield await this.executeQuery<R>(query)
  }

  /** Gives up its turn between tries, so that others can read while another process holds the write lock. */
  async begin(sql: 'begin' | 'begin deferred'): Promise<void> {
    const { connection, turns, limits } = this.#options
    await patiently(limits.connectionMs, async (leftMs) => {
      await turns.take(leftMs)
      this.#thread = connection.thread
      try {
        await this.#once(sql, [])
      } catch (error) {
        this.#finish()
        throw error
      }
    })
  }

  async commit(): Promise<void> {
    await this.#ask('commit', [])
    this.#finish()
  }

  /** Never rejects, so that it does not hide the error that caused the rollback. */
  async rollback(): Promise<void> {
    const { connection } = this.#options
    const thread = this.#thread
    try {
      if (!this.#late) await this.#ask('rollback', [])
    } catch {
      // The next transaction would find this one still open, so the thread is replaced.
      if (!this.#late) connection.abandon(thread)
    }
    this.#finish()
  }

  /** Gives back the turn: at once, or once the overdue statement has been answered and rolled back. */
  #finish(): void {
    const { connection, turns } = this.#options
    const thread = this.#thread
    const late = this.#late
    this.#thread = null
    if (!late) {
      turns.giveBack()
      return
    }
    void late.answer
      .catch(() => {})
      .then(() => connection.run('rollback', [], thread))
      .catch(() => connection.abandon(thread))
      .then(() => {
        this.#late = null
        // The overdue statement may have been a commit that succeeded.
        connection.announce()
        turns.giveBack()
      })
  }

  #askAlone(sql: string, parameters: readonly unknown[]): Promise<ThreadAnswer> {
    const { connection, turns, limits } = this.#options
    return patiently(limits.connectionMs, async (leftMs) => {
      await turns.pass(leftMs)
      const answer = connection.run(sql, parameters)
      return within(limits.statementMs, 'a statement', answer).catch((error: unknown) => {
        // The thread is stuck, so nobody else gets a turn until it answers.
        if (error instanceof Overdue) turns.holdUntil(answer)
        throw error
      })
    })
  }

  #ask(sql: string, parameters: readonly unknown[]): Promise<ThreadAnswer> {
    return patiently(this.#options.limits.connectionMs, () => this.#once(sql, parameters))
  }

  #once(sql: string, parameters: readonly unknown[]): Promise<ThreadAnswer> {
    const { connection, limits } = this.#options
    const answer = connection.run(sql, parameters, this.#thread)
    return within(limits.statementMs, 'a statement', answer).catch((error: unknown) => {
      if (error instanceof Overdue) this.#late = { error, answer }
      throw error
    })
  }
}

/** Tries again while another process keeps the database locked; `ask` is told how much time is left. */
async function patiently<T>(limitMs: number, ask: (leftMs: number) => Promise<T>): Promise<T> {
  const until = performance.now() + limitMs
  let locked: unknown
  for (let waitMs = BUSY_PAUSE_MS.first; ; waitMs = Math.min(waitMs * 2, BUSY_PAUSE_MS.last)) {
    try {
      return await ask(Math.max(until - performance.now(), 0))
    } catch (error) {
      // If an earlier try met the lock, that is the real cause even when this one timed out waiting for its turn.
      if (!isBusy(error)) throw error instanceof Overdue ? (locked ?? error) : error
      if (performance.now() >= until) throw error
      locked = error
    }
    await pause(waitMs)
  }
}

/** SQLITE_BUSY, https://sqlite.org/rescode.html#busy; extended codes carry it in their low byte. */
export function isBusy(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && (Number(error.errcode) & 0xff) === 5
}

function rowsOf<R>({ columns, rows }: ThreadAnswer): R[] {
  return rows.map((values) => {
    const row: Record<string, unknown> = {}
    for (let i = 0; i < columns.length; i++) row[columns[i] ?? ''] = values[i]
    // Kysely typed the rows when the query was built.
    return row as R
  })
}
