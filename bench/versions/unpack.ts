/** Another version of Postern, from the history of this one, made ready to run beside it. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { FlagFault } from '../flags.ts'
import type { Stage } from '../stage/stage.ts'

const here = fileURLToPath(new URL('../..', import.meta.url))

/** Gives the root of the version that `revision` names; it runs on the packages of this one. */
export function unpack(stage: Stage, revision: string): string {
  const root = join(stage.folder, 'version')
  mkdirSync(root)
  const tar = join(stage.folder, 'version.tar')
  try {
    // Taken as a revision and not as an option, whatever it looks like.
    execFileSync('git', ['archive', '--output', tar, '--end-of-options', revision], { cwd: here, stdio: 'pipe' })
  } catch (cause) {
    throw new FlagFault(`--against: git knows no revision ${revision}`, { cause })
  }
  execFileSync('tar', ['-xf', tar, '-C', root])
  symlinkSync(join(here, 'node_modules'), join(root, 'node_modules'))
  return root
}
