/** Where the manifest of the repository waits while the package is packed, and how it comes back. */
import { existsSync, renameSync } from 'node:fs'

export const MANIFEST = 'package.json'
export const SET_ASIDE = '.package.repository.json'

/** Does nothing when none waits. */
export function bringBack(): void {
  if (existsSync(SET_ASIDE)) renameSync(SET_ASIDE, MANIFEST)
}
