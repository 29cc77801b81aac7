/** The thread that holds the SQLite connection: it runs statements in order and answers each. */
import { closeSync, existsSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import { makeFolder } from '../../lib/files/make-folder.ts'

/** The start options of the thread. */
export interface ThreadData {
  readonly path: string
  /** How long opening waits for another process, in milliseconds. */
  readonly openMs: number
  /** Whether to create a missing file. A restarted thread must not: the new database would be empty. */
  readonly makes: boolean
}

export type ThreadRequest =
  | { readonly type: 'run'; readonly sql: string; readonly parameters: readonly unknown[] }
  | { readonly type: 'listen'; readonly pollMs: number }
  | { readonly type: 'close' }

/** Rows are arrays, and column names are sent once: that costs a third of passing objects between threads. */
export interface ThreadAnswer {
  readonly columns: readonly string[]
  readonly rows: readonly (readonly unknown[])[]
  readonly changes: number
}

/** The parts of an error that are sent between threads. */
export interface ThreadFault {
  readonly message: string
  readonly code?: unknown
  readonly errcode?: unknown
  readonly errstr?: unknown
  readonly syscall?: unknown
  readonly path?: unknown
}

/** `opened` comes first, `changed` at any time; the others come in the order of the statements. */
export type ThreadMessage =
  | { readonly type: 'opened' }
  | { readonly type: 'answer'; readonly answer: ThreadAnswer }
  | { readonly type: 'fault'; readonly fault: ThreadFault }
  /** Another process has written. */
  | { readonly type: 'changed' }

/** Prepared statements that are kept; our queries have a few dozen shapes, and more for lists of ids. */
const MAX_STATEMENTS = 256

type Prepared = (parameters: readonly unknown[]) => ThreadAnswer

const NOTHING: ThreadAnswer = { columns: [], rows: [], changes: 0 }

/**
 * A slow disk or another process's lock stops only this thread. Its file imports as little as possible, because every
 * command that starts waits for the thread.
 */
function serve(data: ThreadData, port: NonNullable<typeof parentPort>): void {
  const say = (said: ThreadMessage) => port.postMessage(said)
  let db: DatabaseSync
  try {
    db = open(data)
  } catch (error) {
    say({ type: 'fault', fault: faultOf(error) })
    port.close()
    return
  }
  const statements = new Map<string, Prepared>()
  let poll: NodeJS.Timeout | undefined

  const answer = (sql: string, parameters: readonly unknown[]): ThreadMessage => {
    try {
      const run = statements.get(sql) ?? keep(statements, sql, prepare(db, sql))
      return { type: 'answer', answer: run(parameters) }
    } catch (error) {
      return { type: 'fault', fault: faultOf(error) }
    }
  }
  port.on('message', (asked: ThreadRequest) => {
    if (asked.type === 'run') {
      say(answer(asked.sql, asked.parameters))
    } else if (asked.type === 'listen') {
      poll = watch(db, asked.pollMs, () => say({ type: 'changed' }))
    } else {
      clearInterval(poll)
      // Closing the port first lets the thread end even if closing the database fails.
      port.close()
      db.close()
    }
  })
  say({ type: 'opened' })
}

function open({ path, openMs, makes }: ThreadData): DatabaseSync {
  if (makes) {
    makeFolder(dirname(path))
    // SQLite would create a file that everyone can read. The files that SQLite makes beside this one get the same mode.
    closeSync(openSync(path, 'a', 0o600))
  } else if (!existsSync(path)) throw new Error('the database file is gone')
  const db = new DatabaseSync(path, { timeout: openMs })
  db.exec('pragma journal_mode = wal')
  db.exec('pragma synchronous = full')
  db.exec('pragma foreign_keys = on')
  // From here on the driver waits for locks by trying again, so that other statements can run meanwhile.
  db.exec('pragma busy_timeout = 0')
  return db
}

function prepare(db: DatabaseSync, sql: string): Prepared {
  // `begin immediate` takes the write lock at once: a transaction that reads first could fail to get it later.
  const statement = db.prepare(sql === 'begin' ? 'begin immediate' : sql)
  // On a full disk SQLite rolls back by itself; the error of a second rollback would hide that of the disk.
  if (sql === 'rollback') return (parameters) => (db.isTransaction ? run(statement, parameters) : NOTHING)
  const columns = statement.columns().map(({ name }) => name)
  if (columns.length === 0) return (parameters) => run(statement, parameters)
  statement.setReturnArrays(true)
  return (parameters) => ({
    columns,
    // `setReturnArrays` makes the rows arrays, which the type does not reflect.
    rows: statement.all(...sqlValues(parameters)) as unknown as unknown[][],
    changes: 0,
  })
}

function run(statement: StatementSync, parameters: readonly unknown[]): ThreadAnswer {
  const { changes } = statement.run(...sqlValues(parameters))
  return { ...NOTHING, changes: Number(changes) }
}

/** Our typed queries bind only strings, numbers and null. */
function sqlValues(parameters: readonly unknown[]): SQLInputValue[] {
  return parameters as SQLInputValue[]
}

function keep(statements: Map<string, Prepared>, sql: string, prepared: Prepared): Prepared {
  if (statements.size >= MAX_STATEMENTS) {
    const oldest = statements.keys().next().value
    if (oldest !== undefined) statements.delete(oldest)
  }
  statements.set(sql, prepared)
  return prepared
}

/** Polls for writes of other processes, such as `postern admin`; our own are announced at once. */
function watch(db: DatabaseSync, pollMs: number, changed: () => void): NodeJS.Timeout {
  const version = db.prepare('pragma data_version')
  let last = version.get()?.data_version
  return setInterval(() => {
    try {
      const now = version.get()?.data_version
      if (now !== last) changed()
      last = now
    } catch {
      // A disk error; the next poll or statement will report it.
    }
  }, pollMs)
}

function faultOf(error: unknown): ThreadFault {
  if (!(error instanceof Error)) return { message: String(error) }
  const { message, code, errcode, errstr, syscall, path } = error as Error & Partial<ThreadFault>
  return { message, code, errcode, errstr, syscall, path }
}

if (parentPort) serve(workerData as ThreadData, parentPort)
