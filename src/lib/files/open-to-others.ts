/** Whether a file or folder that holds secrets is open to other users of the machine. */
import { statSync } from 'node:fs'

/** Where Docker shows the secrets of a container, as files that all of its users can read. */
const OF_CONTAINER = '/run/secrets/'

/** Its group may be let in, as containers do. False where there is nothing, and where there are no such rights. */
export function isOpenToOthers(path: string, ofContainer = OF_CONTAINER): boolean {
  if (path.startsWith(ofContainer)) return false
  const found = statSync(path, { throwIfNoEntry: false })
  return process.platform !== 'win32' && found !== undefined && (found.mode & 0o007) !== 0
}
