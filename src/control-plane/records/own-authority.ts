/** The certificate authority of a server: made with its database, shared by its nodes, its key sealed at rest. */
import { renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { makeFolder } from '../../lib/files/make-folder.ts'
import type { Sealer } from '../../lib/secrets/seal.ts'
import { createAuthority } from '../../lib/x509/certificate-authority.ts'
import type { Store } from '../store/store.ts'
import type { Writer } from '../store/writer.ts'
import type { Reseal } from './reseal-database.ts'
import { holdKey } from './sealing.ts'

/** The stored facts: the certificate in the open, and the key, sealed. */
const AUTHORITY = 'certificate_authority'

/** The context that its key is sealed for. */
const CONTEXT = `meta/${AUTHORITY}/key`

/** In PEM. */
interface Kept {
  readonly cert: string
  readonly key: string
}

/**
 * Opens the certificate and key of the authority of `store`; a new database gets new ones. `certificateFile` is written for
 * clients that should trust it.
 */
export async function openAuthority(store: Store, sealer: Sealer, certificateFile: string): Promise<Kept> {
  const known = await store.read((reader) => reader.meta(AUTHORITY))
  const text =
    known ??
    (await store.write(async (writer) => {
      await holdKey(writer, sealer)
      const { certPem, keyPem } = createAuthority()
      const kept: Kept = { cert: certPem, key: sealer.seal(keyPem, CONTEXT) }
      return writer.keepMeta(AUTHORITY, JSON.stringify(kept))
    }))
  const { cert, key } = JSON.parse(text) as Kept // written above
  publish(certificateFile, cert)
  return { cert, key: opened(sealer, key) }
}

/** Seals the key of the authority again; returns the number of keys. */
export async function resealAuthority(writer: Writer, reseal: Reseal): Promise<number> {
  const text = await writer.meta(AUTHORITY)
  if (text === undefined) return 0
  const { cert, key } = JSON.parse(text) as Kept // written above
  const kept: Kept = { cert, key: reseal(key, CONTEXT) }
  await writer.setMeta(AUTHORITY, JSON.stringify(kept))
  return 1
}

function opened(sealer: Sealer, key: string): string {
  try {
    return sealer.open(key, CONTEXT)
  } catch (cause) {
    const what = 'the key of the certificate authority in the database cannot be opened'
    throw new Error(`${what}: somebody changed it there; restore the database from a backup`, { cause })
  }
}

/** The database holds the authority; the file is a copy, replaced in one step so that nobody reads half of it. */
function publish(path: string, cert: string): void {
  makeFolder(dirname(path))
  const draft = `${path}.${process.pid}`
  writeFileSync(draft, cert, { mode: 0o644 })
  renameSync(draft, path)
}
