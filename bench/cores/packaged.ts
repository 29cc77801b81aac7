/** Postern as the package has it, JavaScript and no longer TypeScript: Node takes more memory to run the sources. */
import { execFileSync } from 'node:child_process'
import { copyFileSync, cpSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Stage } from '../stage/stage.ts'

const here = fileURLToPath(new URL('../..', import.meta.url))

export interface Packaged {
  readonly root: string
  /** A copy of Node, which no other process of this machine shares its memory with. */
  readonly node: string
}

export function makePackaged({ folder: root }: Stage): Packaged {
  const compiler = join(here, 'node_modules', 'typescript', 'bin', 'tsc')
  const project = ['--project', join(here, 'tsconfig.build.json'), '--outDir', join(root, 'dist')]
  execFileSync(process.execPath, [compiler, ...project], { stdio: ['ignore', 2, 2] })
  cpSync(join(here, 'bin'), join(root, 'bin'), { recursive: true })
  copyFileSync(join(here, 'package.json'), join(root, 'package.json'))
  symlinkSync(join(here, 'node_modules'), join(root, 'node_modules'))
  const node = join(root, 'node')
  copyFileSync(process.execPath, node)
  return { root, node }
}
