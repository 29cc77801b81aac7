/** The checks of `postern doctor` for the files of a server. */
import { X509Certificate } from 'node:crypto'
import { closeSync, openSync, readSync } from 'node:fs'
import { errorCode } from '../../lib/error-code.ts'
import { readSmallFile } from '../../lib/files/read-small-file.ts'
import { readKeyFile } from '../../lib/secrets/seal.ts'
import { type Finding, toDo, unknown, well } from './finding.ts'

interface ServerFiles {
  /** The certificate of the server's own authority. */
  readonly caFile: string
  readonly keyFile: string
  /** The file of a SQLite database; undefined for another database. */
  readonly databaseFile: string | undefined
}

/** More than a certificate has, in bytes. */
const MAX_CA_BYTES = 64 * 1024

/** What a SQLite database begins with. */
const SQLITE = 'SQLite format 3\0'

/** The findings, and the authority's certificate in PEM if it is usable. */
export function checkServerFiles({ caFile, keyFile, databaseFile }: ServerFiles): {
  readonly findings: Finding[]
  readonly authority: string | undefined
} {
  let authority: string | undefined
  const findings = [
    ...look('ca.pem', caFile, 'remove it and restart the server, which writes a new one', () => {
      const text = readSmallFile(caFile, MAX_CA_BYTES)
      void new X509Certificate(text)
      authority = text
    }),
    ...look('key file', keyFile, 'restore it from a backup: secrets cannot be read without it', () =>
      readKeyFile(keyFile),
    ),
    ...(databaseFile === undefined
      ? []
      : look('database file', databaseFile, 'restore it from a backup', () => readMark(databaseFile))),
  ]
  return { findings, authority }
}

/**
 * A missing file is no finding: the first start creates it. A damaged file is a finding, and does not stop the other checks.
 */
function look(check: string, path: string, next: string, read: () => unknown): Finding[] {
  try {
    read()
    return [well(check, `${path} is readable`)]
  } catch (error) {
    const code = errorCode(error) ?? ''
    if (code === 'ENOENT') return []
    if (code === 'EACCES' || code === 'EPERM') {
      return [unknown(check, `${path} cannot be read (${code})`, 'run this as the user that runs the server')]
    }
    const why = systemCodes.has(code) ? code : 'it is empty or damaged'
    return [toDo(check, `${path} cannot be used: ${why}`, next)]
  }
}

const systemCodes: ReadonlySet<string> = new Set(['EISDIR', 'EFBIG', 'ETIMEDOUT', 'EIO', 'ELOOP', 'ENOTDIR'])

function readMark(path: string): void {
  const file = openSync(path, 'r')
  try {
    const bytes = Buffer.alloc(SQLITE.length)
    readSync(file, bytes, 0, bytes.length, 0)
    if (bytes.toString('latin1') !== SQLITE) throw new Error('not a database')
  } finally {
    closeSync(file)
  }
}
