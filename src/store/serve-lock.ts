/**
 * Keeps two servers off one SQLite file, where neither would know who is online at the other. It is SQLite's own lock on a
 * file beside the database: the kernel drops it with the process, so that a crash leaves none behind.
 */
import { closeSync, existsSync, openSync, realpathSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { makeFolder } from '../lib/files/make-folder.ts'

/** How long another that starts at the same moment may keep this one waiting, in milliseconds. */
const BUSY_MS = 500
/** https://sqlite.org/rescode.html#busy */
const SQLITE_BUSY = 5

/** Locks the database behind `url` for one server, when it is SQLite; gives back how to let it go. */
export function lockForServing(url: string): () => void {
  if (!url.startsWith('sqlite:')) return () => {}
  const path = url.slice('sqlite:'.length)
  makeFolder(dirname(path))
  const file = `${realPath(path)}.lock`
  if (!existsSync(file)) makePrivate(file)
  const lock = opened(file)
  try {
    // The journal of this file protects nothing.
    lock.exec('pragma synchronous = off')
    // A number that others can read while the lock is held.
    lock.exec(`pragma user_version = ${process.pid}`)
    lock.exec('begin immediate')
  } catch (error) {
    const fault = isBusy(error) ? heldBy(lock, path) : new Error(`cannot lock ${file}`, { cause: error })
    lock.close()
    throw fault
  }
  return () => lock.close()
}

function opened(file: string): DatabaseSync {
  try {
    return new DatabaseSync(file, { timeout: BUSY_MS })
  } catch (cause) {
    throw new Error(`cannot open ${file}`, { cause })
  }
}

function heldBy(lock: DatabaseSync, path: string): Error {
  const pid = Number(lock.prepare('pragma user_version').get()?.user_version)
  return new Error(
    `another server, process ${pid}, uses the SQLite database in ${dirname(path)}; stop that one, or choose another folder with --data-dir`,
  )
}

/** However the file is named: through a link, or from another folder. */
function realPath(path: string): string {
  return existsSync(path) ? realpathSync(path) : join(realpathSync(dirname(path)), basename(path))
}

/** Never opens a file that is there: to close it again would drop the locks that this process has on it. */
function makePrivate(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && (Number(error.errcode) & 0xff) === SQLITE_BUSY
}
