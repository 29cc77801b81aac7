/** A stored fact with a key in it: made once for a database, shared by its nodes, the key sealed at rest. */
import type { Sealer } from '../../lib/secrets/seal.ts'
import type { Store } from '../store/store.ts'
import type { Writer } from '../store/writer.ts'
import type { Reseal } from './reseal-database.ts'
import { holdKey } from './sealing.ts'

/** The fact called `name`; only its key is sealed. `what` names the key in messages. */
export function sealedFact<Kept extends { readonly key: string }>(name: string, what: string) {
  const context = `meta/${name}/key`
  const opened = (sealer: Sealer, text: string): Kept => {
    const kept = JSON.parse(text) as Kept // written below
    try {
      return { ...kept, key: sealer.open(kept.key, context) }
    } catch (cause) {
      const why = 'somebody changed it there; restore the database from a backup'
      throw new Error(`${what} in the database cannot be opened: ${why}`, { cause })
    }
  }
  return {
    /** Gives the fact of `store` with its key opened; a database without one gets what `make` makes. */
    async open(store: Store, sealer: Sealer, make: () => Kept | Promise<Kept>): Promise<Kept> {
      const known = await store.read((reader) => reader.meta(name))
      if (known !== undefined) return opened(sealer, known)
      const made = await make()
      // Another node may have been faster; then its key is used.
      const text = await store.write(async (writer) => {
        await holdKey(writer, sealer)
        return writer.keepMeta(name, JSON.stringify({ ...made, key: sealer.seal(made.key, context) }))
      })
      return opened(sealer, text)
    },

    /** Seals the key again; returns the number of keys. */
    async reseal(writer: Writer, reseal: Reseal): Promise<number> {
      const text = await writer.meta(name)
      if (text === undefined) return 0
      const kept = JSON.parse(text) as Kept // written above
      await writer.setMeta(name, JSON.stringify({ ...kept, key: reseal(kept.key, context) }))
      return 1
    },
  }
}
