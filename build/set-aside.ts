/** Sets the manifest of the repository aside while the package is packed, and restores it. */
import { constants, copyFileSync, existsSync, renameSync } from 'node:fs'

export const MANIFEST = 'package.json'
const SET_ASIDE = '.package.repository.json'

/** Returns false when one is set aside already: two runs in one folder would pack each other's builds. */
export function setAside(): boolean {
  try {
    copyFileSync(MANIFEST, SET_ASIDE, constants.COPYFILE_EXCL)
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false
    throw error
  }
}

/** Does nothing when none is set aside. */
export function bringBack(): void {
  if (existsSync(SET_ASIDE)) renameSync(SET_ASIDE, MANIFEST)
}
