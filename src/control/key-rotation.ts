/** Goes over to a new key: every secret of the database is sealed anew, in one transaction. */
import { makeKeyFile, readKeyFile, removeKeyFile, replaceKeyFile, type Sealer } from '../lib/seal.ts'
import { modules } from '../modules/index.ts'
import { resources } from '../resources/index.ts'
import type { StoredModule } from '../store/reader.ts'
import type { Store } from '../store/store.ts'
import type { Writer } from '../store/writer.ts'
import { resealAuthority } from './authority.ts'
import { KEY_ID, nextKeyFile, openSealer } from './sealing.ts'
import { openFields, sealFields } from './secrets.ts'

/** How many rows are held in memory at a time. */
const AT_A_TIME = 500

/**
 * Replaces the key file and seals all secrets anew; gives the number of rows. Whenever it is cut off, the database and
 * one of the two key files belong together, and the next start finds out which.
 */
export async function rotateKey(store: Store, keyFile: string): Promise<number> {
  const old = await openSealer(store, keyFile)
  const next = nextKeyFile(keyFile)
  // One that was left over belongs to no database: `openSealer` would have taken it.
  removeKeyFile(next)
  makeKeyFile(next)
  const sealer = readKeyFile(next)
  const sealed = await store.write(async (writer) => {
    await writer.setMeta(KEY_ID, sealer.keyId)
    const authority = await resealAuthority(writer, old, sealer)
    return authority + (await resealModules(writer, old, sealer)) + (await resealResources(writer, old, sealer))
  })
  replaceKeyFile(next, keyFile)
  return sealed
}

async function resealModules(writer: Writer, old: Sealer, sealer: Sealer): Promise<number> {
  const secrets = new Map(modules.flatMap(({ name, secrets }) => (secrets ? [[name, secrets]] : [])))
  let count = 0
  let after: StoredModule | null = null
  for (;;) {
    const some: StoredModule[] = await writer.modulesNamed([...secrets.keys()], { after, limit: AT_A_TIME })
    for (const { hostId, module, config } of some) {
      const names = secrets.get(module) ?? []
      await writer.putModule(hostId, module, sealFields(sealer, names, openFields(old, names, config)))
    }
    count += some.length
    after = some.at(-1) ?? null
    if (!after) return count
  }
}

async function resealResources(writer: Writer, old: Sealer, sealer: Sealer): Promise<number> {
  let count = 0
  for (const { kind, secrets } of resources.filter((resource) => resource.secrets.length > 0)) {
    let beforeId: string | undefined
    do {
      const some = await writer.page({ kind, limit: AT_A_TIME, ...(beforeId !== undefined && { beforeId }) })
      for (const { id, fields } of some) {
        await writer.replaceFields(id, sealFields(sealer, secrets, openFields(old, secrets, fields)))
      }
      count += some.length
      beforeId = some.at(-1)?.id
    } while (beforeId !== undefined)
  }
  return count
}
