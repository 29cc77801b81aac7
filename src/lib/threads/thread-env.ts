/** What our threads have for variables: none of the process, but for where Node keeps the code that it compiled. */
import { getCompileCacheDir } from 'node:module'
import { dirname } from 'node:path'

/** For a new `Worker`, which would otherwise compile all that it imports, at each start. */
export function threadEnv(): { readonly NODE_COMPILE_CACHE?: string } {
  // The folder of this very Node, inside of the one that Node was told.
  const folder = getCompileCacheDir()
  return folder === undefined ? {} : { NODE_COMPILE_CACHE: dirname(folder) }
}
