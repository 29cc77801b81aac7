/** Whether a folder is safe to run code from. */
import { statSync } from 'node:fs'

/** Programs are run from a folder, and put into it, only if nobody else can write there. Throws when there is none. */
export function isOurs(folder: string): boolean {
  const { uid, mode } = statSync(folder)
  return process.getuid === undefined || (uid === process.getuid() && (mode & 0o022) === 0)
}
