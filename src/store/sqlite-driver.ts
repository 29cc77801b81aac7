/** Kysely's driver for the SQLite thread: who may use the one connection when, and for how long. */
import { setTimeout as pause } from 'node:timers/promises'
import type { CompiledQuery, DatabaseConnection, Driver, QueryResult, TransactionSettings } from 'kysely'
import { Overdue, type StoreLimits, within } from './limits.ts'
import type { SqliteConnection, Thread } from './sqlite-connection.ts'
import type { Answer } from './sqlite-thread.ts'
import type { SqliteTurns } from './sqlite-turns.ts'

/** From the first to the longest pause before a locked database is asked again, in milliseconds. */
const BUSY_PAUSE_MS = { first: 1, last: 50 }

export interface SqliteDriverOptions {
  readonly connection: SqliteConnection
  readonly turns: SqliteTurns
  readonly limits: Pick<StoreLimits, 'connectionMs' | 'statementMs'>
}

export class SqliteThreadDriver implements Driver {
  readonly #options: SqliteDriverOptions

  constructor(options: SqliteDriverOptions) {
    this.#options = options
  }

  async init(): Promise<void> {}

  async acquireConnection(): Promise<DatabaseConnection> {
    return new Lease(this.#options)
  }

  async beginTransaction(lease: DatabaseConnection, { accessMode }: TransactionSettings): Promise<void> {
    // One that only reads takes no lock: others may write meanwhile, and it sees none of that.
    await asLease(lease).begin(accessMode === 'read only' ? 'begin deferred' : 'begin')
  }

  async commitTransaction(lease: DatabaseConnection): Promise<void> {
    await asLease(lease).commit()
  }

  async rollbackTransaction(lease: DatabaseConnection): Promise<void> {
    await asLease(lease).rollback()
  }

  async releaseConnection(): Promise<void> {}

  /** The thread is shared; who opened it closes it. */
  async destroy(): Promise<void> {}
}

/** Kysely hands back what it was given. */
function asLease(connection: DatabaseConnection): Lease {
  return connection as Lease
}

/** The connection as one query or one transaction sees it. */
class Lease implements DatabaseConnection {
  readonly #options: SqliteDriverOptions
  /** Of the transaction that is open here. */
  #thread: Thread | null = null
  /** A statement of the transaction that was given up and not yet answered. */
  #late: { readonly error: Overdue; readonly answer: Promise<unknown> } | null = null

  constructor(options: SqliteDriverOptions) {
    this.#options = options
  }

  async executeQuery<R>({ sql, parameters }: CompiledQuery): Promise<QueryResult<R>> {
    if (this.#late) throw this.#late.error
    const answer = this.#thread ? await this.#ask(sql, parameters) : await this.#askAlone(sql, parameters)
    return { rows: rowsOf<R>(answer), numAffectedRows: BigInt(answer.changes) }
  }

  /** Nothing here streams; one chunk keeps the promise of the type. */
  async *streamQuery<R>(query: CompiledQuery): AsyncIterableIterator<QueryResult<R>> {
    yield await this.executeQuery<R>(query)
  }

  /** Between two tries a locked database is left to others, who can read while another process writes. */
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

  /** Never fails, so that whoever failed before it is heard. */
  async rollback(): Promise<void> {
    const { connection } = this.#options
    const thread = this.#thread
    try {
      if (!this.#late) await this.#ask('rollback', [])
    } catch {
      // A transaction that cannot be ended would be found open by the next one.
      if (!this.#late) connection.abandon(thread)
    }
    this.#finish()
  }

  /** Gives back the turn, at once or when the statement that was given up has been answered and undone. */
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
        // It may have been a commit that was stored after all.
        connection.announce()
        turns.giveBack()
      })
  }

  #askAlone(sql: string, parameters: readonly unknown[]): Promise<Answer> {
    const { connection, turns, limits } = this.#options
    return patiently(limits.connectionMs, async (leftMs) => {
      await turns.pass(leftMs)
      const answer = connection.run(sql, parameters)
      return within(limits.statementMs, 'a statement', answer).catch((error: unknown) => {
        // Nobody gets in line behind a thread that is stuck.
        if (error instanceof Overdue) turns.holdUntil(answer)
        throw error
      })
    })
  }

  #ask(sql: string, parameters: readonly unknown[]): Promise<Answer> {
    return patiently(this.#options.limits.connectionMs, () => this.#once(sql, parameters))
  }

  #once(sql: string, parameters: readonly unknown[]): Promise<Answer> {
    const { connection, limits } = this.#options
    const answer = connection.run(sql, parameters, this.#thread)
    return within(limits.statementMs, 'a statement', answer).catch((error: unknown) => {
      if (error instanceof Overdue) this.#late = { error, answer }
      throw error
    })
  }
}

/** Asks again while another process keeps the database locked; each time it says how much time is left. */
async function patiently<T>(limitMs: number, ask: (leftMs: number) => Promise<T>): Promise<T> {
  const until = performance.now() + limitMs
  let locked: unknown
  for (let waitMs = BUSY_PAUSE_MS.first; ; waitMs = Math.min(waitMs * 2, BUSY_PAUSE_MS.last)) {
    try {
      return await ask(Math.max(until - performance.now(), 0))
    } catch (error) {
      // Whoever waits in line after it met the lock waits for the lock all the same.
      if (!isBusy(error)) throw error instanceof Overdue ? (locked ?? error) : error
      if (performance.now() >= until) throw error
      locked = error
    }
    await pause(waitMs)
  }
}

/** SQLITE_BUSY, https://sqlite.org/rescode.html#busy; extended codes carry it in their low byte. */
function isBusy(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && (Number(error.errcode) & 0xff) === 5
}

function rowsOf<R>({ columns, rows }: Answer): R[] {
  return rows.map((values) => {
    const row: Record<string, unknown> = {}
    for (let i = 0; i < columns.length; i++) row[columns[i] ?? ''] = values[i]
    // What a query gives is as it was typed when it was built.
    return row as R
  })
}
