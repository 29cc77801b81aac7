/** The host key of the SSH gateway: made with its database, shared by its nodes, sealed at rest. */
import type { Sealer } from '../../lib/secrets/seal.ts'
import { Secret } from '../../lib/secrets/secret.ts'
import { makeSshHostKey } from '../../lib/ssh-keys/ssh-host-key.ts'
import { readSshPublicKey } from '../../lib/ssh-keys/ssh-public-key.ts'
import type { Store } from '../store/store.ts'
import { sealedFact } from './sealed-fact.ts'

interface OpenHostKey {
  readonly privateText: Secret
  /** As clients show it when they connect for the first time. */
  readonly fingerprint: string
}

/** Its public line, and its private text as the key. */
export const hostKeyFact = sealedFact<{ readonly line: string; readonly key: string }>(
  'ssh_host_key',
  'the SSH host key',
)

/** Opens the host key of `store`; a new database gets a new one. */
export async function openSshHostKey(store: Store, sealer: Sealer): Promise<OpenHostKey> {
  const { line, key } = await hostKeyFact.open(store, sealer, () => {
    const { publicLine, privateText } = makeSshHostKey()
    return { line: publicLine, key: privateText }
  })
  return { privateText: new Secret(key), fingerprint: readSshPublicKey(line).fingerprint }
}
