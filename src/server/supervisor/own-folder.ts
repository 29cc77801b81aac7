/** A private folder for the Unix sockets by which the processes of one server find each other. */
import { mkdirSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Longest path of the folder, in bytes: the path of a Unix socket has at most 107, of which its name takes some. */
const MAX_FOLDER_BYTES = 85

const NAME = 'postern-'

/**
 * Makes the folder among temporary files, or else in the data directory, which may be the only writable place of a container.
 * Throws the system's error when neither works.
 */
export function makeOwnFolder(dataDir: string, temporary: readonly string[] = [tmpdir(), '/tmp']): string {
  let failure: unknown
  for (const parent of [...temporary, dataDir]) {
    if (Buffer.byteLength(join(parent, `${NAME}XXXXXX`)) > MAX_FOLDER_BYTES) continue
    try {
      // Before the first start the data directory does not exist.
      if (parent === dataDir) mkdirSync(dataDir, { recursive: true, mode: 0o700 })
      return mkdtempSync(join(parent, NAME))
    } catch (error) {
      failure ??= error
    }
  }
  throw failure ?? new Error(`the path of the data directory is too long for sockets in it: ${dataDir}`)
}
