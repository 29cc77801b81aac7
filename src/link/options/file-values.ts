/** Values that may be files: text that looks like content is the value itself, any other text names a file. */
import { X509Certificate } from 'node:crypto'

/** The content that a value names. Throws an `Error` whose text continues after the name of the option. */
export type ReadText = (text: string) => string

/** Whether `text` is content: unlike a path, content has line breaks or begins as PEM. */
export function isContent(text: string): boolean {
  return /[\r\n]|^\s*-----BEGIN /.test(text)
}

/** The content of a traffic policy; unlike other content it may fit on one line, as JSON or as YAML with one key. */
export function readPolicy(text: string, readText: ReadText): string {
  return /^\s*(\{|["']?\w{2,}["']?\s*:(\s|$))/.test(text) ? text : readText(text)
}

/** Returns `pem` unchanged; throws unless it consists of certificates. */
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
