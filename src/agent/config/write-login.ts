/** Saves a login in the user's configuration file, and leaves everything else in it unchanged. */
import { randomBytes } from 'node:crypto'
import { existsSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { makeFolder } from '../../lib/files/make-folder.ts'
import type { Secret } from '../../lib/secrets/secret.ts'
import { formatServer, type ServerAddress } from '../server-address.ts'
import { ConfigError } from './config-error.ts'
import { readBounded } from './text-files.ts'

export interface SavedLogin {
  readonly server: ServerAddress
  readonly authtoken: Secret
  /** PEM; without it the CAs of the machine are trusted. */
  readonly ca: string | undefined
}

/** Writes the file so that only the user can read it. */
export async function writeLogin(path: string, { server, authtoken, ca }: SavedLogin): Promise<void> {
  const { Document, isMap, parseDocument } = await import('yaml')
  const target = existsSync(path) ? realpathSync(path) : path
  const document = existsSync(target) ? parseDocument(readBounded(target)) : new Document({ version: 1 })
  if (document.errors.length > 0 || (document.contents !== null && !isMap(document.contents))) {
    throw new ConfigError([`${path} is not a configuration file; fix it or move it away, then log in again`])
  }
  document.set('server', formatServer(server))
  document.set('authtoken', authtoken.reveal())
  if (ca === undefined) document.delete('ca')
  else document.set('ca', ca)
  makeFolder(dirname(target))
  const next = `${target}.${randomBytes(6).toString('hex')}`
  try {
    writeFileSync(next, document.toString(), { mode: 0o600, flag: 'wx', flush: true })
    renameSync(next, target)
  } finally {
    rmSync(next, { force: true })
  }
}
