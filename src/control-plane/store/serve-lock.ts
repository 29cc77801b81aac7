/** Keeps two servers from using one SQLite database. */
import { closeSync, existsSync, openSync, realpathSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { makeFolder } from '../../lib/files/make-folder.ts'
import { isBusy } from './sqlite-driver.ts'

/** How long to wait for another server that starts at the same moment, in milliseconds. */
const BUSY_MS = 500

/**
 * Locks the database at `url` for one server, if it is SQLite; returns a function that releases the lock. Two servers would
 * not know which agents are online at the other.
 *
 * The lock is SQLite's own, on a file beside the database. The kernel drops it with the process, so a crash leaves no stale
 * lock.
 */
export function lockForServing(url: string): () => void {
  if (!url.startsWith('sqlite:')) return () => {}
  const path = url.slice('sqlite:'.length)
  makeFolder(dirname(path))
  const file = `${realPath(path)}.lock`
  if (!existsSync(file)) makePrivate(file)
  const lock = openDatabase(file)
  try {
    // The lock file holds no data worth a sync to disk.
    lock.exec('pragma synchronous = off')
    // Others can read this number while the lock is held, to report which process holds it.
    lock.exec(`pragma user_version = ${process.pid}`)
    lock.exec('begin immediate')
  } catch (error) {
    const fault = isBusy(error) ? heldBy(lock, path) : new Error(`cannot lock ${file}`, { cause: error })
    lock.close()
    throw fault
  }
  return () => lock.close()
}

function openDatabase(file: string): DatabaseSync {
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

/** The same path however the file was named, such as through a link or from another folder. */
function realPath(path: string): string {
  return existsSync(path) ? realpathSync(path) : join(realpathSync(dirname(path)), basename(path))
}

/** Never opens an existing file: closing it again would drop the locks that this process has on it. */
function makePrivate(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}
