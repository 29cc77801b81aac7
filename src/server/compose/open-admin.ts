/** Manages users and keys directly in the database, for when no key is at hand. */
import {
  createKey,
  createUser,
  deleteUser,
  listUsers,
  type Role,
  setUserActive,
} from '../../control-plane/records/manage-users.ts'
import { liftRestrictions } from '../../control-plane/records/stored-restrictions.ts'
import { openStore } from '../../control-plane/store/store.ts'
import { IdSource } from '../../lib/ids.ts'
import type { RestrictedPart } from '../../model/restricted-part.ts'
import type { Settings } from '../config/read-settings.ts'

/** Loads little, so that the command answers at once. `migrates` as for `openStore`. */
export async function openAdmin(settings: Settings, { migrates = false }: { readonly migrates?: boolean } = {}) {
  const now = Date.now
  const store = await openStore(settings.databaseUrl, { migrates })
  const making = { store, ids: new IdSource({ now }), now }
  return {
    createUser: (user: { name: string; role: Role }) => createUser(making, user),
    createKey: (key: { ownerId: string; description: string }) => createKey(making, key),
    listUsers: () => listUsers(making),
    setUserActive: (id: string, active: boolean) => setUserActive(making, id, active),
    deleteUser: (id: string) => deleteUser(making, id),
    liftRestrictions: (parts?: readonly RestrictedPart[]) => liftRestrictions(store, parts),
    rotateKey: async () => {
      // Loaded on use, since it visits the secrets of every resource and module.
      const { rotateKey } = await import('../../control-plane/records/key-rotation.ts')
      return rotateKey(store, settings.keyFile)
    },
    close: () => store.close(),
  }
}
