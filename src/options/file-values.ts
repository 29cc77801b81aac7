/** Values that are files: text that is the content itself is taken as it is, anything else names one. */
import { X509Certificate } from 'node:crypto'

/** The content of what a value names. Throws an `Error` whose text goes on from the name of the option. */
export type ReadText = (text: string) => string

/** Content has lines; a path has none. */
export function isContent(text: string): boolean {
  return /[\r\n]|^\s*-----BEGIN /.test(text)
}

/** The content of a traffic policy, which as JSON or with one key fits on a line. */
export function readPolicy(text: string, readText: ReadText): string {
  return /^\s*(\{|["']?\w{2,}["']?\s*:(\s|$))/.test(text) ? text : readText(text)
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
