/** Where the manifest of the repository waits while the package is packed, and how it comes back. */
import { constants, copyFileSync, existsSync, renameSync } from 'node:fs'

export const MANIFEST = 'package.json'
const SET_ASIDE = '.package.repository.json'

/** False when one waits already: two at work in one folder would pack what the other builds. */
export function setAside(): boolean {
  try {
    copyFileSync(MANIFEST, SET_ASIDE, constants.COPYFILE_EXCL)
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false
    throw error
  }
}

/** Does nothing when none waits. */
export function bringBack(): void {
  if (existsSync(SET_ASIDE)) renameSync(SET_ASIDE, MANIFEST)
}
