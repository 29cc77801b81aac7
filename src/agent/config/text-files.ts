/** Values that are files: a path is read, bounded, and text that is the content itself is taken as it is. */
import { X509Certificate } from 'node:crypto'
import { resolve } from 'node:path'
import { readSmallFile } from '../../lib/read-small-file.ts'

/** Largest file that a setting may name, in bytes. */
const FILE_BYTES = 1024 * 1024

/** Longest path that a message shows, in characters. */
const PATH_SHOWN = 512

/** The content of what a setting names. Throws an `Error` whose text goes on from the name of the setting. */
export type ReadText = (text: string) => string

/** Paths start at `folder`, that of the file they stand in. */
export function textReader(folder: string): ReadText {
  return (text) => {
    if (text.trim() === '') throw new Error('must not be empty')
    return isContent(text) ? text : readBounded(resolve(folder, text))
  }
}

/** The same for a traffic policy, which as JSON or with one key fits on a line. */
export function readPolicy(text: string, readText: ReadText): string {
  return /^\s*(\{|["']?\w{2,}["']?\s*:(\s|$))/.test(text) ? text : readText(text)
}

/** Reads one file whole, if it is not larger than a settings file can be. */
export function readBounded(path: string): string {
  try {
    return readSmallFile(path, FILE_BYTES)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : ''
    if (code === 'EFBIG') throw new Error(`names a file of more than ${FILE_BYTES} bytes`)
    throw new Error(`cannot be read: ${faultOf(path, code)}`, { cause: error })
  }
}

/** Content has lines; a path has none. */
function isContent(text: string): boolean {
  return /[\r\n]|^\s*-----BEGIN /.test(text)
}

function faultOf(path: string, code: string): string {
  // What is so long was hardly meant as a path, and may be a secret.
  if (path.length > PATH_SHOWN) return 'it is neither the content nor the path of a file'
  if (code === 'ENOENT') return `there is no ${path}`
  if (code === 'ETIMEDOUT') return `${path} is a pipe that nobody writes to`
  return code === 'EISDIR' ? `${path} is a folder` : `${path}: ${code}`
}

/** `pem` as it is, when it holds certificates. */
export function certificatesPem(pem: string): string {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []
  if (blocks.length === 0 || !blocks.every(isCertificate))
    throw new Error('must be certificates in PEM, or a file of them')
  return pem
}

function isCertificate(block: string): boolean {
  try {
    return new X509Certificate(block).subject !== undefined
  } catch {
    return false
  }
}
