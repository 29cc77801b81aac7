/** Which key seals the secrets of a database: made with it, checked at every start. */
import { hasKeyFile, makeKeyFile, readKeyFile, type Sealer } from '../lib/seal.ts'
import type { Store } from '../store/store.ts'

const KEY_ID = 'sealing_key'

/** Opens the key file that belongs to `store`; a new database gets a new one. Throws when it is missing or another's. */
export async function openSealer(store: Store, keyFile: string): Promise<Sealer> {
  const known = await store.read((reader) => reader.meta(KEY_ID))
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
      `the key file ${keyFile} is not the one this database was made with; nodes of one database share one key file: copy it here, or name it with --key-file`,
    )
  }
  return sealer
}
