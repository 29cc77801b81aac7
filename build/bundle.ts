/**
 * The package with everything it needs in one folder: what a container image holds, and what agents update to.
 *
 * `npm run bundle -- <folder>` makes it from the sources here.
 */
import { execFileSync } from 'node:child_process'
import { copyFileSync, createReadStream, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createGunzip } from 'node:zlib'
import { tarFiles } from '../src/agent/update/tar.ts'

/** npm as scripts are to call it: quiet, and asking nobody what it need not. */
const QUIET = ['--no-audit', '--no-fund', '--loglevel=error']

/** Runs `npm pack` in `source`; gives the path of the tarball, which is put into `folder`. */
export function pack(source: string, folder: string): string {
  const args = ['pack', `--pack-destination=${folder}`, ...QUIET]
  const said = execFileSync('npm', args, { cwd: source, encoding: 'utf8', stdio: ['ignore', 'pipe', 2] })
  // Its name is the last line; scripts may print before.
  const name = said.trim().split('\n').at(-1)
  if (!name) throw new Error('npm packed nothing')
  return join(folder, name)
}

/** Unpacks `tarball` into `folder`, which must not be there yet. */
export async function unpack(tarball: string, folder: string): Promise<void> {
  mkdirSync(folder)
  for await (const { path, isExecutable, bytes } of tarFiles(createReadStream(tarball).pipe(createGunzip()))) {
    const file = join(folder, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, bytes, { flag: 'wx', mode: isExecutable ? 0o755 : 0o644 })
  }
}

/** Brings the dependencies of the package in `folder`, each in the version that `lockFile` names. */
export function bringDependencies(folder: string, lockFile: string): void {
  copyFileSync(lockFile, join(folder, 'package-lock.json'))
  // No links, which archives may not hold; nothing that is optional, since that is native and we do without.
  const args = ['install', '--omit=dev', '--omit=optional', '--ignore-scripts', '--no-bin-links', '--prefer-offline']
  execFileSync('npm', [...args, ...QUIET], { cwd: folder, stdio: ['ignore', 2, 2] })
  for (const file of ['package-lock.json', 'node_modules/.package-lock.json']) rmSync(join(folder, file))
}

if (import.meta.main) {
  const [folder] = process.argv.slice(2)
  if (folder === undefined) {
    console.error('usage: npm run bundle -- <folder>')
    process.exit(2)
  }
  const tarball = pack('.', dirname(folder))
  await unpack(tarball, folder)
  rmSync(tarball)
  bringDependencies(folder, 'package-lock.json')
}
