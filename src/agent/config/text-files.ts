/** Reads values that name a file on this machine, up to a size. */
import { resolve } from 'node:path'
import { readSmallFile } from '../../lib/files/read-small-file.ts'
import { isContent, type ReadText } from '../../link/options/file-values.ts'

/** Largest file that a setting may name, in bytes. */
const FILE_BYTES = 1024 * 1024

/** Longest path that a message shows, in characters. */
const PATH_SHOWN = 512

/** Relative paths start at `folder`, where the configuration file is. */
export function textReader(folder: string): ReadText {
  return (text) => {
    if (text.trim() === '') throw new Error('must not be empty')
    return isContent(text) ? text : readBounded(resolve(folder, text))
  }
}

/** Reads one file whole, up to the largest size of a settings file. */
export function readBounded(path: string): string {
  try {
    return readSmallFile(path, FILE_BYTES)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : ''
    if (code === 'EFBIG') throw new Error(`names a file of more than ${FILE_BYTES} bytes`)
    throw new Error(`cannot be read: ${faultOf(path, code)}`, { cause: error })
  }
}

function faultOf(path: string, code: string): string {
  // A text this long is hardly a path, and may be a secret.
  if (path.length > PATH_SHOWN) return 'it is neither the content nor the path of a file'
  if (code === 'ENOENT') return `there is no ${path}`
  if (code === 'ETIMEDOUT') return `${path} is a pipe without a writer`
  return code === 'EISDIR' ? `${path} is a folder` : `${path}: ${code}`
}
