/** Whether a folder is safe to run code from. */
import { statSync } from 'node:fs'

/** Programs are put into a folder and run from it only if no other user can write there. Throws when there is none. */
export function isOurs(folder: string): boolean {
  const { uid, mode } = statSync(folder)
  return process.getuid === undefined || (uid === process.getuid() && (mode & 0o022) === 0)
}
