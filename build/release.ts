/**
 * Makes a release that agents can update to: the package with its dependencies, signed, and listed in `releases.json`.
 *
 * `npm run release -- --key release.key --to <folder>` builds it from this repository; `docs/agent.md` says how to
 * point agents to the folder.
 */
import { execFileSync } from 'node:child_process'
import { createPrivateKey, type KeyObject, sign } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { signedText } from '../src/agent/update/releases.ts'
import { parseVersion } from '../src/agent/update/version.ts'
import { bringDependencies, pack, unpack } from './bundle.ts'

/** The top folder in an archive, as in npm's. */
const PACKAGE = 'package'

interface Listed {
  readonly version: string
  readonly archive: string
  readonly signature: string
}

/** Adds the package in `parent/package`, with its dependencies, to the releases in `folder`; returns its version. */
export function addRelease(parent: string, folder: string, key: KeyObject): string {
  const bundled = join(parent, PACKAGE)
  const { version } = JSON.parse(readFileSync(join(bundled, 'package.json'), 'utf8')) as { version: string }
  if (!parseVersion(version)) throw new Error(`${version} is not the version of a release, such as 1.2.3`)
  if (key.asymmetricKeyType !== 'ed25519') throw new Error('the key must be an Ed25519 key')
  mkdirSync(folder, { recursive: true })
  const list = join(folder, 'releases.json')
  const others = readList(list).filter((each) => each.version !== version)
  const archive = `postern-${version}.tgz`
  const next = join(folder, `${archive}.next`)
  // With tar, since npm takes ten times as long for the files of dependencies.
  execFileSync('tar', ['-czf', resolve(next), '-C', parent, PACKAGE])
  const signature = sign(null, signedText(version, readFileSync(next)), key).toString('base64')
  const releases: Listed[] = [...others, { version, archive, signature }]
  renameSync(next, join(folder, archive))
  // Replaced by a rename, since agents may be reading it.
  writeFileSync(`${list}.next`, `${JSON.stringify({ releases }, null, 2)}\n`)
  renameSync(`${list}.next`, list)
  return version
}

function readList(file: string): readonly Listed[] {
  try {
    return (JSON.parse(readFileSync(file, 'utf8')) as { releases: Listed[] }).releases
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return []
    throw error
  }
}

if (import.meta.main) {
  const { key, to } = parseArgs({ options: { key: { type: 'string' }, to: { type: 'string' } } }).values
  if (key === undefined || to === undefined) {
    console.error('usage: npm run release -- --key <file> --to <folder>')
    process.exit(2)
  }
  const privateKey = createPrivateKey(readFileSync(key))
  const scratch = mkdtempSync(join(tmpdir(), 'postern-release-'))
  try {
    const bundled = join(scratch, PACKAGE)
    await unpack(pack('.', scratch), bundled)
    bringDependencies(bundled, 'package-lock.json')
    console.log(`${addRelease(scratch, to, privateKey)} is in ${to}`)
  } finally {
    rmSync(scratch, { recursive: true })
  }
}
