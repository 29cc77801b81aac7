/** The environment variables of our threads: none of the process, only the folder of Node's compile cache. */
import { getCompileCacheDir } from 'node:module'
import { dirname } from 'node:path'

/** For a new `Worker`, which would otherwise compile all that it imports at each start. */
export function threadEnv(): { readonly NODE_COMPILE_CACHE?: string } {
  // Node reports the subfolder of its own version; the variable names the folder above.
  const folder = getCompileCacheDir()
  return folder === undefined ? {} : { NODE_COMPILE_CACHE: dirname(folder) }
}
