/**
 * The key that seals the secrets of a database: created with it, and checked at every start and before every write of a secret.
 */
import { hasKeyFile, makeKeyFile, readKeyFile, replaceKeyFile, type Sealer } from '../../lib/secrets/seal.ts'
import { Refusal } from '../../model/errors.ts'
import type { Store } from '../store/store.ts'
import type { Writer } from '../store/writer.ts'

/** The fact that names the key of a database. */
export const KEY_ID = 'sealing_key'

/** Where a rotation keeps the new key until the database uses it. */
export function nextKeyFile(keyFile: string): string {
  return `${keyFile}.next`
}

/** Opens the key file of `store`; a new database gets a new one. Throws when the file is missing or belongs to another database. */
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
 * Checks that the database still uses `sealer`'s key, inside the transaction that is about to store a secret. A value sealed
 * under a key that was rotated away could never be read again.
 */
export async function holdKey(writer: Writer, sealer: Sealer): Promise<void> {
  if ((await writer.holdMeta(KEY_ID)) !== sealer.keyId) throw new Refusal('KEY_ROTATED')
}

/** Finishes a rotation that was interrupted after the database had switched: the new key file is still beside the old one. */
function finishRotation(keyFile: string, known: string | undefined): void {
  const next = nextKeyFile(keyFile)
  if (known !== undefined && hasKeyFile(next) && readKeyFile(next).keyId === known) replaceKeyFile(next, keyFile)
}
