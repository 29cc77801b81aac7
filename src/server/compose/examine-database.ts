/** Examines a database for `postern doctor`: whether it is damaged, and whether the key file is its own. */
import { KEY_ID } from '../../control-plane/records/sealing.ts'
import { lookInside } from '../../control-plane/store/look-inside.ts'

/** `isOtherKey` is false for a database that has no key yet. Rejects when the database cannot be read. */
export async function examineDatabase(databaseUrl: string, keyId: string | undefined) {
  const { damage, fact } = await lookInside(databaseUrl, KEY_ID)
  return { damage, isOtherKey: fact !== undefined && keyId !== undefined && fact !== keyId }
}
