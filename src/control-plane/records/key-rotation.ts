/** Rotates the key: every secret of the database is sealed again, in one transaction. */
import { makeKeyFile, readKeyFile, removeKeyFile, replaceKeyFile, type Sealer } from '../../lib/secrets/seal.ts'
import type { Store } from '../store/store.ts'
import { bindSecrets } from './bound-secrets.ts'
import { resealAll } from './reseal-database.ts'
import { KEY_ID, nextKeyFile, openSealer } from './sealing.ts'

/**
 * Replaces the key file and seals all secrets again; returns the number of rows. If it is interrupted at any point, the database
 * matches one of the two key files, and the next start finds out which.
 */
export async function rotateKey(store: Store, keyFile: string): Promise<number> {
  const old = await openSealer(store, keyFile)
  await bindSecrets(store, old)
  const next = nextKeyFile(keyFile)
  // A leftover file belongs to no database: `openSealer` would have used it.
  removeKeyFile(next)
  makeKeyFile(next)
  const sealer = readKeyFile(next)
  const sealed = await store.write(async (writer) => {
    await writer.setMeta(KEY_ID, sealer.keyId)
    return resealAll(writer, (text, context) => sealer.seal(openSealed(old, text, context), context))
  })
  replaceKeyFile(next, keyFile)
  return sealed
}

function openSealed(sealer: Sealer, sealed: string, context: string): string {
  try {
    return sealer.open(sealed, context)
  } catch (cause) {
    throw new Error(`the stored secret ${context} cannot be opened, so nothing was changed; set it anew first`, {
      cause,
    })
  }
}
