/**
 * The package with all its dependencies in one folder: the content of container images and of agent updates.
 *
 * `npm run bundle -- <folder>` builds it from this repository.
 */
import { execFileSync } from 'node:child_process'
import { copyFileSync, createReadStream, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createGunzip } from 'node:zlib'
import { tarFiles } from '../src/agent/update/tar.ts'

/** Options for npm in scripts: less output, and no needless requests to the registry. */
const QUIET = ['--no-audit', '--no-fund', '--loglevel=error']

/** Runs `npm pack` in `source`, with the tarball going to `folder`; returns the path of the tarball. */
export function pack(source: string, folder: string): string {
  const args = ['pack', `--pack-destination=${folder}`, ...QUIET]
  const output = execFileSync('npm', args, { cwd: source, encoding: 'utf8', stdio: ['ignore', 'pipe', 2] })
  // The name is the last line; scripts may print before it.
  const name = output.trim().split('\n').at(-1)
  if (!name) throw new Error('npm packed nothing')
  return join(folder, name)
}

/** Unpacks `tarball` into `folder`, which must not exist yet. */
export async function unpack(tarball: string, folder: string): Promise<void> {
  mkdirSync(folder)
  for await (const { path, isExecutable, bytes } of tarFiles(createReadStream(tarball).pipe(createGunzip()))) {
    const file = join(folder, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, bytes, { flag: 'wx', mode: isExecutable ? 0o755 : 0o644 })
  }
}

/** Installs the dependencies of the package in `folder`, each in the version that `lockFile` names. */
export function bringDependencies(folder: string, lockFile: string): void {
  copyFileSync(lockFile, join(folder, 'package-lock.json'))
  // No links, which archives must not hold; nothing optional, which would be native code that we do not need.
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
