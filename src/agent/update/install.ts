/** Installs a release beside the others: fetches, verifies and unpacks it under a temporary name, then renames it. */
import { type KeyObject, randomBytes, verify } from 'node:crypto'
import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { promisify } from 'node:util'
import { createGunzip } from 'node:zlib'
import { isOurs } from '../../lib/files/is-ours.ts'
import { makeFolder } from '../../lib/files/make-folder.ts'
import { CURRENT_FILE, checkRelease, type InstalledRelease, releaseIn } from './installed.ts'
import type { ReleaseSource } from './release-source.ts'
import { type Release, signedText } from './releases.ts'
import { tarFiles } from './tar.ts'
import { latest, parseVersion } from './version.ts'

/** Largest archive, in bytes. */
const ARCHIVE_BYTES = 64 * 1024 * 1024

/** How many releases are kept: an agent may still be running from the previous one. */
const KEPT = 3

/** Leftovers of an interrupted installation are removed after this time, in milliseconds. */
const LEFTOVER_MS = 24 * 3_600_000

const INCOMING = '.incoming-'

const verifySignature = promisify(verify)

export interface Install {
  readonly release: Release
  readonly source: ReleaseSource
  readonly publicKey: KeyObject
  /** See `versionsFolder`. */
  readonly folder: string
}

/** Rejects, and changes nothing, when anything is wrong with the release. */
export async function installRelease({ release, source, publicKey, folder }: Install): Promise<InstalledRelease> {
  const { version, archive, signature } = release
  if (!parseVersion(version)) throw new Error('the release has no version')
  const bytes = await source.read(archive, ARCHIVE_BYTES)
  // On another thread, since this process is carrying traffic meanwhile.
  const isGenuine = await verifySignature(null, signedText(version, bytes), publicKey, signature)
  if (!isGenuine) throw new Error(`the signature of ${archive} is invalid; nothing was installed`)
  makeFolder(folder)
  if (!isOurs(folder)) throw new Error(`others may write to ${folder}; nothing was installed`)
  await clearLeftovers(folder)
  const incoming = join(folder, `${INCOMING}${randomBytes(8).toString('hex')}`)
  try {
    await unpack(bytes, incoming)
    checkRelease(incoming, version)
    await install(incoming, join(folder, version))
  } finally {
    await rm(incoming, { recursive: true, force: true })
  }
  const installed = releaseIn(folder, version)
  await writeWhole(join(folder, CURRENT_FILE), `${version}\n`)
  await clearOld(folder, version)
  return installed
}

async function unpack(archive: Buffer, folder: string): Promise<void> {
  await mkdir(folder, { mode: 0o700 })
  const known = new Set<string>()
  for await (const { path, isExecutable, bytes } of tarFiles(Readable.from([archive]).pipe(createGunzip()))) {
    const target = join(folder, path)
    if (!known.has(dirname(target))) await mkdir(dirname(target), { recursive: true })
    known.add(dirname(target))
    await writeNew(target, bytes, isExecutable ? 0o755 : 0o644)
  }
}

/** Flushes the files to disk first: otherwise a power cut could leave a half-written release that would be run. */
async function writeNew(path: string, bytes: Buffer | string, mode: number): Promise<void> {
  const file = await open(path, 'wx', mode)
  try {
    await file.writeFile(bytes)
    await file.sync()
  } finally {
    await file.close()
  }
}

async function install(incoming: string, destination: string): Promise<void> {
  try {
    await rename(incoming, destination)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : ''
    // Another agent of this user was faster. Its release is complete, since only complete ones get this name.
    if (code !== 'ENOTEMPTY' && code !== 'EEXIST') throw error
  }
}

async function writeWhole(path: string, text: string): Promise<void> {
  const next = `${path}.${randomBytes(8).toString('hex')}`
  try {
    await writeNew(next, text, 0o600)
    await rename(next, path)
  } finally {
    await rm(next, { force: true })
  }
}

async function clearLeftovers(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    if (!name.startsWith(INCOMING)) continue
    const { mtimeMs } = await stat(join(folder, name))
    if (Date.now() - mtimeMs > LEFTOVER_MS) await rm(join(folder, name), { recursive: true, force: true })
  }
}

async function clearOld(folder: string, current: string): Promise<void> {
  let versions = (await readdir(folder)).filter((name) => parseVersion(name) && name !== current)
  for (let kept = 1; versions.length > 0; kept++) {
    const newest = latest(versions)
    if (newest === undefined) return
    versions = versions.filter((name) => name !== newest)
    if (kept >= KEPT) await rm(join(folder, newest), { recursive: true, force: true })
  }
}
