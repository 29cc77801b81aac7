/** Packs a copy of this clone with npm, since packing writes to its folder, where others may work. */
import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join, resolve } from 'node:path'
import { pack } from '../../../build/bundle.ts'

/** The files that packing reads. */
const TAKEN = [
  ...['package.json', 'package-lock.json', '.npmrc', 'tsconfig.json', 'tsconfig.build.json', 'tsconfig.types.json'],
  ...['README.md', 'LICENSE', 'CHANGELOG.md', 'bin', 'build', 'deploy', 'docs', 'src'],
]

export interface Packed {
  /** A folder for files of the test, removed after it. */
  readonly scratch: string
  /** The copy that was packed. */
  readonly clone: string
  readonly tarball: string
  remove(): void
}

export function packClone(): Packed {
  // npm and its scripts must run with the Node of this test, not with an older one of the machine.
  process.env.PATH = `${dirname(process.execPath)}${delimiter}${process.env.PATH}`
  const scratch = realpathSync(mkdtempSync(join(tmpdir(), 'postern-package-')))
  const clone = join(scratch, 'clone')
  mkdirSync(clone)
  for (const name of TAKEN) cpSync(name, join(clone, name), { recursive: true })
  symlinkSync(resolve('node_modules'), join(clone, 'node_modules'))
  return { scratch, clone, tarball: pack(clone, scratch), remove: () => rmSync(scratch, { recursive: true }) }
}
