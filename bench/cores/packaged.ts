/** Postern as packaged, in JavaScript instead of TypeScript: Node needs more memory to run the sources. */
import { execFileSync } from 'node:child_process'
import { copyFileSync, cpSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Stage } from '../stage/stage.ts'

const here = fileURLToPath(new URL('../..', import.meta.url))

export interface Packaged {
  readonly root: string
  /** A copy of Node, so that it shares no memory with other processes of this machine. */
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
