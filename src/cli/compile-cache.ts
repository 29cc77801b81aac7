/**
 * Keeps the code that Node compiles, so that the next start need not compile it again.
 *
 * Node does so by itself where NODE_COMPILE_CACHE names a folder. Otherwise the code goes to the user's folder for
 * caches. Never to the shared folder for temporary files, which is Node's own default: Node runs what it finds there,
 * and another user could have put it there.
 */
import { enableCompileCache } from 'node:module'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { isOurs } from '../lib/files/is-ours.ts'
import { makeFolder } from '../lib/files/make-folder.ts'

type Env = Readonly<Record<string, string | undefined>>

/** To be called once the flags of the engine are set: it takes no code that was compiled under others. Never throws. */
export function keepCompiledCode(env: Env = process.env): void {
  if (env.NODE_COMPILE_CACHE || env.NODE_DISABLE_COMPILE_CACHE) return
  try {
    const caches = cachesOf(env)
    if (caches === undefined) return
    const folder = join(caches, 'postern', 'compiled')
    makeFolder(folder)
    if (isOurs(folder)) enableCompileCache(folder)
  } catch {
    // A folder that cannot be written, as in a read-only container: we start without.
  }
}

/** Where this user's caches are; undefined in the home of somebody else, which `sudo` may leave us with. */
function cachesOf(env: Env): string | undefined {
  // systemd names the folder of a service itself.
  const [named = ''] = (env.CACHE_DIRECTORY ?? '').split(':')
  const chosen = named || env.XDG_CACHE_HOME || (process.platform === 'win32' ? env.LOCALAPPDATA : undefined)
  if (chosen) return chosen
  const home = env.HOME || homedir()
  if (!isOurs(home)) return undefined
  return process.platform === 'darwin' ? join(home, 'Library', 'Caches') : join(home, '.cache')
}
