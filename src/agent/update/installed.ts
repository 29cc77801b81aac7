/** The releases that updates have installed, and which of them to run. */
import { readFileSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { isOurs } from '../../lib/files/is-ours.ts'
import { isMap } from '../../link/options/option-reader.ts'
import { isUpdate, parseVersion } from './version.ts'

export interface InstalledRelease {
  readonly version: string
  /** The script to start with Node. */
  readonly launcher: string
}

/** The file that names the release to run. */
export const CURRENT_FILE = 'current'

/** The folder of this user's releases, with one folder per release. */
export function versionsFolder(env: Readonly<Record<string, string | undefined>>): string {
  return join(env.XDG_DATA_HOME || join(env.HOME || homedir(), '.local', 'share'), 'postern', 'versions')
}

/** The installed release when it is an update of `version`; undefined when there is none that is complete and owned by this user. */
export function installedUpdate(folder: string, version: string): InstalledRelease | undefined {
  try {
    if (!isOurs(folder)) return undefined
    const current = readFileSync(join(folder, CURRENT_FILE), 'utf8').trim()
    return isUpdate(current, version) ? releaseIn(folder, current) : undefined
  } catch {
    return undefined
  }
}

/** The release of that version in `folder`; throws when it is missing or something else. */
export function releaseIn(folder: string, version: string): InstalledRelease {
  if (!parseVersion(version)) throw new Error('not a version')
  return { version, launcher: checkRelease(join(folder, version), version) }
}

/** Returns the path of the launcher in `folder`; throws when it does not hold Postern of that version. */
export function checkRelease(folder: string, version: string): string {
  const manifest: unknown = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const isRight = isMap(manifest) && manifest.name === 'postern' && manifest.version === version
  if (!isRight) throw new Error(`the archive does not hold Postern ${version}`)
  const launcher = join(folder, 'bin', 'postern.js')
  if (!statSync(launcher).isFile()) throw new Error('the archive has no `bin/postern.js`')
  return launcher
}
