/** Values that are files: a path is read, bounded, and text that is the content itself is taken as it is. */
import { X509Certificate } from 'node:crypto'
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'

/** Largest file that a setting may name, in bytes. */
const FILE_BYTES = 1024 * 1024

/** The content of what a setting names. Throws an `Error` whose text goes on from the name of the setting. */
export type ReadText = (text: string) => string

/** Paths start at `folder`, that of the file they stand in. */
export function textReader(folder: string): ReadText {
  return (text) => (isContent(text) ? text : readBounded(resolve(folder, text)))
}

/** Reads one file whole, if it is not larger than a settings file can be. */
export function readBounded(path: string): string {
  let file: number | undefined
  try {
    file = openSync(path, 'r')
    const { size } = fstatSync(file)
    if (size > FILE_BYTES) throw new Error(`names a file of more than ${FILE_BYTES} bytes`)
    return readFileSync(file, 'utf8')
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : ''
    if (code === '') throw error
    throw new Error(`cannot be read: ${code === 'ENOENT' ? `there is no ${path}` : `${path}: ${code}`}`, {
      cause: error,
    })
  } finally {
    if (file !== undefined) closeSync(file)
  }
}

/** Content has lines; a path has none. */
function isContent(text: string): boolean {
  return text.includes('\n') || text.startsWith('-----BEGIN ')
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
