/** Examines a database for `postern doctor`: whether it is damaged, whose key it has, and who holds names of the server. */
import { heldByOthers, KEPT_FROM } from '../../control-plane/records/held-names.ts'
import { KEY_ID } from '../../control-plane/records/sealing.ts'
import { lookInside } from '../../control-plane/store/look-inside.ts'

/** `isOtherKey` is false for a database that has no key yet. Rejects when the database cannot be read. */
export async function examineDatabase(databaseUrl: string, keyId: string | undefined, ownNames: ReadonlySet<string>) {
  const { damage, fact, held } = await lookInside(databaseUrl, KEY_ID, { scopes: KEPT_FROM, keys: [...ownNames] })
  const holders = heldByOthers(held.map(({ key, holder_id: holderId }) => ({ key, holderId })))
  return { damage, isOtherKey: fact !== undefined && keyId !== undefined && fact !== keyId, held: holders }
}
