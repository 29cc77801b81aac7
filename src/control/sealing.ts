/** Which key seals the secrets of a database: made with it, checked at every start and before every secret is written. */
import { hasKeyFile, makeKeyFile, readKeyFile, replaceKeyFile, type Sealer } from '../lib/secrets/seal.ts'
import { Refusal } from '../model/errors.ts'
import type { Store } from '../store/store.ts'
import type { Writer } from '../store/writer.ts'

/** The fact that names the key of a database. */
export const KEY_ID = 'sealing_key'

/** Where a rotation keeps the new key until the database has gone over to it. */
export function nextKeyFile(keyFile: string): string {
  return `${keyFile}.next`
}

/** Opens the key file that belongs to `store`; a new database gets a new one. Throws when it is missing or another's. */
export async function openSealer(store: Store, keyFile: string): Promise<Sealer> {
  const known = await store.read((reader) => reader.meta(KEY_ID))
  finishRotation(keyFile, known)
  if (!hasKeyFile(keyFile)) {
    if (known !== undefined) {
      throw new Error(
        `the key file ${keyFile} is missing, and the secrets in the database cannot be read without it; restore it from a backup, or name it with --key-file`,
      )
    }
    makeKeyFile(keyFile)
  }
  const sealer = readKeyFile(keyFile)
  const expected = await store.write((writer) => writer.keepMeta(KEY_ID, sealer.keyId))
  if (expected !== sealer.keyId) {
    throw new Error(
      `the key file ${keyFile} is not the one that seals this database; nodes of one database share one key file, also after a rotation: copy it here, or name it with --key-file`,
    )
  }
  return sealer
}

/**
 * Makes sure, inside the transaction that is about to store a secret, that the database still goes by `sealer`'s key:
 * what a server sealed under a key that was rotated away could never be read again.
 */
export async function holdKey(writer: Writer, sealer: Sealer): Promise<void> {
  if ((await writer.holdMeta(KEY_ID)) !== sealer.keyId) throw new Refusal('KEY_ROTATED')
}

/** A rotation that was cut off after the database went over to the new key left that key beside the old one. */
function finishRotation(keyFile: string, known: string | undefined): void {
  const next = nextKeyFile(keyFile)
  if (known !== undefined && hasKeyFile(next) && readKeyFile(next).keyId === known) replaceKeyFile(next, keyFile)
}
