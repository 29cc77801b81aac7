/** The certificate authority of a server: made with its database, shared by its nodes, its key sealed at rest. */
import { renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { makeFolder } from '../../lib/files/make-folder.ts'
import type { Sealer } from '../../lib/secrets/seal.ts'
import { createAuthority } from '../../lib/x509/certificate-authority.ts'
import type { Store } from '../store/store.ts'
import { sealedFact } from './sealed-fact.ts'

/** In PEM. */
interface Authority {
  readonly cert: string
  readonly key: string
}

export const authorityFact = sealedFact<Authority>('certificate_authority', 'the key of the certificate authority')

/**
 * Opens the certificate and key of the authority of `store`; a new database gets new ones. `certificateFile` is written for
 * clients that should trust it.
 */
export async function openAuthority(store: Store, sealer: Sealer, certificateFile: string): Promise<Authority> {
  const authority = await authorityFact.open(store, sealer, () => {
    const { certPem: cert, keyPem: key } = createAuthority()
    return { cert, key }
  })
  publish(certificateFile, authority.cert)
  return authority
}

/** The database holds the authority; the file is a copy, replaced in one step so that nobody reads half of it. */
function publish(path: string, cert: string): void {
  makeFolder(dirname(path))
  const draft = `${path}.${process.pid}`
  writeFileSync(draft, cert, { mode: 0o644 })
  renameSync(draft, path)
}
