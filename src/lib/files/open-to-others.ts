/** Whether a file or folder that holds secrets is open to other users of the machine. */
import { statSync } from 'node:fs'

/** Its group may be let in, as containers do. False where there is nothing, and where there are no such rights. */
export function isOpenToOthers(path: string): boolean {
  const found = statSync(path, { throwIfNoEntry: false })
  return process.platform !== 'win32' && found !== undefined && (found.mode & 0o007) !== 0
}
