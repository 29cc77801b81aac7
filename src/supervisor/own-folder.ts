/** A private folder for the Unix sockets by which the processes of one server find each other. */
import { mkdirSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Longest path of the folder, in bytes: the path of a Unix socket has at most 107, of which its name takes some. */
const MAX_FOLDER_BYTES = 85

const NAME = 'postern-'

/**
 * Among temporary files, else in the data directory: a container may have nothing else that can be written. Throws the
 * error of the system when neither can be.
 */
export function makeOwnFolder(dataDir: string, temporary: readonly string[] = [tmpdir(), '/tmp']): string {
  let failure: unknown
  for (const parent of [...temporary, dataDir]) {
    if (Buffer.byteLength(join(parent, `${NAME}XXXXXX`)) > MAX_FOLDER_BYTES) continue
    try {
      // At the first start it is not there yet.
      if (parent === dataDir) mkdirSync(dataDir, { recursive: true, mode: 0o700 })
      return mkdtempSync(join(parent, NAME))
    } catch (error) {
      failure ??= error
    }
  }
  throw failure ?? new Error(`the path of the data directory is too long for sockets in it: ${dataDir}`)
}
