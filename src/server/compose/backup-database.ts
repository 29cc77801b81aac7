/** Composes `postern backup` and `postern restore`, which work on the database and the key file named by the settings. */
import { existsSync, rmSync } from 'node:fs'
import {
  type BackupContents,
  inspectBackup,
  isSealed,
  makeBackup,
  readBackup,
} from '../../control-plane/records/backup-format.ts'
import { OlderDatabase } from '../../control-plane/store/migrations.ts'
import { lockForServing } from '../../control-plane/store/serve-lock.ts'
import { openStore } from '../../control-plane/store/store.ts'
import { hasKeyFile, keyText, makeKeyFile, removeKeyFile } from '../../lib/secrets/seal.ts'
import type { Settings } from '../config/read-settings.ts'

export interface BackUp {
  readonly version: string
  readonly passphrase: string | undefined
  /** As for `openStore`. */
  readonly migrates: boolean
  readonly take: (bytes: AsyncIterable<Uint8Array>) => Promise<void>
  readonly onProgress: (rows: number) => void
}

/** Makes a backup of one moment, whether a server runs or not. */
export async function backUp(settings: Settings, { take, migrates, ...making }: BackUp): Promise<BackupContents> {
  const { databaseUrl, keyFile } = settings
  // Opening a missing database would create one.
  if (isMissing(databaseUrl))
    throw new Error(`there is no database at ${filePath(databaseUrl)}; name it with --data-dir`)
  if (!hasKeyFile(keyFile)) throw new Error(`there is no key file at ${keyFile}; name it with --key-file`)
  const store = await openStore(databaseUrl, { migrates })
  try {
    return await makeBackup({ store, keyFile, now: Date.now, ...making }, take)
  } finally {
    await store.close()
  }
}

interface Restore {
  /** Opens the file from its beginning: it is read to its end once before anything is written. */
  readonly file: () => AsyncIterable<Uint8Array>
  readonly passphrase: string | undefined
}

/** Fills an empty database, and makes its key file; both are as before when that fails. */
export async function restore(settings: Settings, { file, passphrase }: Restore, key: string): Promise<void> {
  const { databaseUrl, keyFile } = settings
  // The same key may be there, left by a restore that was killed.
  if (hasKeyFile(keyFile) && keyText(keyFile) !== key) {
    throw new Error(
      `there is already a key file at ${keyFile}; restore into an empty place, see --data-dir and --key-file`,
    )
  }
  // A server that starts meanwhile would make its own first user.
  const release = lockForServing(databaseUrl)
  try {
    await fill(settings, { file, passphrase }, key)
  } finally {
    if (isMissing(databaseUrl)) rmSync(`${filePath(databaseUrl)}.lock`, { force: true })
    release()
  }
}

async function fill({ databaseUrl, keyFile }: Settings, { file, passphrase }: Restore, key: string): Promise<void> {
  const hadKey = hasKeyFile(keyFile)
  const isNew = isMissing(databaseUrl)
  const store = await openStore(databaseUrl, { migrates: false }).catch((error: unknown) => {
    throw error instanceof OlderDatabase ? new Error(notEmpty(': an older version of Postern made it')) : error
  })
  let isUnused = false
  try {
    if (!(await store.isEmpty())) throw new Error(notEmpty())
    // The key first: a database without its key would be useless.
    makeKeyFile(keyFile, key)
    await store.fill(readBackup(file(), passphrase)).catch((error: unknown) => {
      if (!hadKey) removeKeyFile(keyFile)
      throw error
    })
  } catch (error) {
    isUnused = isNew && (await store.isEmpty().catch(() => false))
    throw error
  } finally {
    await store.close()
    if (isUnused) removeFile(databaseUrl)
  }
}

function notEmpty(why = ''): string {
  return `the database is not empty${why}; restore into an empty one, see --data-dir and --database-url`
}

/** Reads a whole backup, to check that it can be restored and what it holds. */
export async function inspect({ file, passphrase }: Restore): Promise<BackupContents> {
  return inspectBackup(file(), passphrase)
}

/** Whether a file that begins with these bytes needs a passphrase. */
export const asksForPassphrase = isSealed

function isMissing(databaseUrl: string): boolean {
  return databaseUrl.startsWith('sqlite:') && !existsSync(filePath(databaseUrl))
}

function removeFile(databaseUrl: string): void {
  for (const end of ['', '-wal', '-shm']) rmSync(`${filePath(databaseUrl)}${end}`, { force: true })
}

function filePath(databaseUrl: string): string {
  return databaseUrl.slice('sqlite:'.length)
}
