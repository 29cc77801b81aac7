/** Unpacks another version of Postern from the history, ready to run beside this one. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { FlagFault } from '../flags.ts'
import type { Stage } from '../stage/stage.ts'

const here = fileURLToPath(new URL('../..', import.meta.url))

/** Returns the root folder of the version at `revision`; it uses the packages of this one. */
export function unpack(stage: Stage, revision: string): string {
  const root = join(stage.folder, 'version')
  mkdirSync(root)
  const tar = join(stage.folder, 'version.tar')
  try {
    // Makes git read it as a revision, never as an option.
    execFileSync('git', ['archive', '--output', tar, '--end-of-options', revision], { cwd: here, stdio: 'pipe' })
  } catch (cause) {
    throw new FlagFault(`--against: git knows no revision ${revision}`, { cause })
  }
  execFileSync('tar', ['-xf', tar, '-C', root])
  symlinkSync(join(here, 'node_modules'), join(root, 'node_modules'))
  return root
}
