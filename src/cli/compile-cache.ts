/** Caches the code that Node compiles, so that the next start need not compile it again. */
import { enableCompileCache } from 'node:module'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { isOurs } from '../lib/files/is-ours.ts'
import { makeFolder } from '../lib/files/make-folder.ts'

type Env = Readonly<Record<string, string | undefined>>

/**
 * To be called after the flags of V8 are set, since it rejects code that was compiled with other flags. Never throws.
 *
 * Node caches by itself where NODE_COMPILE_CACHE names a folder. Otherwise the code goes to the user's cache folder, never
 * to the shared folder for temporary files, which is Node's default. Node runs what it finds in its cache, and in a shared
 * folder another user could have put it there.
 */
export function keepCompiledCode(env: Env = process.env): void {
  if (env.NODE_COMPILE_CACHE || env.NODE_DISABLE_COMPILE_CACHE) return
  try {
    const caches = cachesOf(env)
    if (caches === undefined) return
    const folder = join(caches, 'postern', 'compiled')
    makeFolder(folder)
    if (isOurs(folder)) enableCompileCache(folder)
  } catch {
    // The folder cannot be written, as in a read-only container: start without a cache.
  }
}

/** This user's cache folder; undefined if HOME belongs to another user, as it may under `sudo`. */
function cachesOf(env: Env): string | undefined {
  // systemd sets this for a service with a cache folder.
  const [named = ''] = (env.CACHE_DIRECTORY ?? '').split(':')
  const chosen = named || env.XDG_CACHE_HOME || (process.platform === 'win32' ? env.LOCALAPPDATA : undefined)
  if (chosen) return chosen
  const home = env.HOME || homedir()
  if (!isOurs(home)) return undefined
  return process.platform === 'darwin' ? join(home, 'Library', 'Caches') : join(home, '.cache')
}
