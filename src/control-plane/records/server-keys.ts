/** Keys that a server makes with its database and shares with its nodes, sealed at rest: of its authority, of SSH, of SAML. */
import { renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { makeFolder } from '../../lib/files/make-folder.ts'
import type { Sealer } from '../../lib/secrets/seal.ts'
import { Secret } from '../../lib/secrets/secret.ts'
import { makeSshHostKey } from '../../lib/ssh-keys/ssh-host-key.ts'
import { readSshPublicKey } from '../../lib/ssh-keys/ssh-public-key.ts'
import { createAuthority } from '../../lib/x509/certificate-authority.ts'
import { makeRequestKey, type RequestKey } from '../../modules/saml/request-key.ts'
import type { Store } from '../store/store.ts'
import { sealedFact } from './sealed-fact.ts'

/** In PEM. */
interface Authority {
  readonly cert: string
  readonly key: string
}

const authorityFact = sealedFact<Authority>('certificate_authority', 'the key of the certificate authority')

/** Its public line, and its private text as the key. */
const hostKeyFact = sealedFact<{ readonly line: string; readonly key: string }>('ssh_host_key', 'the SSH host key')

const requestKeyFact = sealedFact<{ readonly certificate: string; readonly key: string }>(
  'saml_request_key',
  'the key that signs requests to identity providers',
)

export const keyFacts = [authorityFact, requestKeyFact, hostKeyFact] as const

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

/** Opens the host key of the SSH gateway; its fingerprint is as clients show it when they connect for the first time. */
export async function openSshHostKey(store: Store, sealer: Sealer) {
  const { line, key } = await hostKeyFact.open(store, sealer, () => {
    const { publicLine, privateText } = makeSshHostKey()
    return { line: publicLine, key: privateText }
  })
  return { privateText: new Secret(key), fingerprint: readSshPublicKey(line).fingerprint }
}

/**
 * Gives a function that returns the key that signs requests to identity providers, which is made when it is first needed. Do
 * not call that inside a transaction, since it may need one of its own.
 */
export function requestKeyOf(store: Store, sealer: Sealer, now: () => number): () => Promise<RequestKey> {
  let found: Promise<RequestKey> | undefined
  const find = async (): Promise<RequestKey> => {
    const { certificate, key } = await requestKeyFact.open(store, sealer, async () => {
      const made = await makeRequestKey(now())
      return { certificate: made.certificate, key: made.key.reveal() }
    })
    return { certificate, key: new Secret(key) }
  }
  return () => {
    found ??= find().catch((error: unknown) => {
      // The next caller tries again.
      found = undefined
      throw error
    })
    return found
  }
}
