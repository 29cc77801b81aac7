/** Looks up what agents authenticate with: authtokens and SSH keys, with their current ACL. */
import type { Secret } from '../lib/secrets/secret.ts'
import type { AgentCredential } from '../model/agent-credential.ts'
import { AUTHTOKENS, credentials } from '../resources/credentials.ts'
import { SSH_KEYS, sshCredentials } from '../resources/ssh-credentials.ts'
import type { StoredResource } from '../store/reader.ts'
import type { Store } from '../store/store.ts'
import { tokenHash, wellFormedToken } from './principal.ts'

/** How long a lookup may take, in milliseconds: an agent must get the error before its own authentication timeout. */
export const LOOKUP_MS = 5000

/** The credential with this token; undefined when it is not valid. */
export async function findCredential(store: Store, token: Secret): Promise<AgentCredential | undefined> {
  const text = token.reveal()
  if (!wellFormedToken(text)) return undefined
  return store.read(
    async (reader) => {
      const id = await reader.holder(AUTHTOKENS, tokenHash(text))
      return id === undefined
        ? undefined
        : usable(await reader.resource(credentials.kind, id), (ids) => reader.resources(ids))
    },
    { withinMs: LOOKUP_MS },
  )
}

/** The credential with this public key fingerprint; undefined when there is none. */
export async function findSshCredential(store: Store, fingerprint: string): Promise<AgentCredential | undefined> {
  return store.read(
    async (reader) => {
      const id = await reader.holder(SSH_KEYS, fingerprint)
      return id === undefined
        ? undefined
        : usable(await reader.resource(sshCredentials.kind, id), (ids) => reader.resources(ids))
    },
    { withinMs: LOOKUP_MS },
  )
}

/** The same credential, looked up again: its ACL may have changed, or it may be gone. */
export async function currentCredential(store: Store, id: string): Promise<AgentCredential | undefined> {
  return store.read(async (reader) => usable(await reader.resource(kindOf(id), id), (ids) => reader.resources(ids)), {
    withinMs: LOOKUP_MS,
  })
}

/** The owner of a credential; undefined when it is gone. */
export async function ownerOfCredential(store: Store, id: string): Promise<string | undefined> {
  const found = await store.read((reader) => reader.resource(kindOf(id), id))
  return found?.ownerId ?? undefined
}

/** Both kinds of credentials start sessions. */
function kindOf(id: string): string {
  return id.startsWith(sshCredentials.prefix) ? sshCredentials.kind : credentials.kind
}

/** Credentials of an inactive owner are not valid, as its keys are not. */
async function usable(
  credential: StoredResource | undefined,
  find: (ids: readonly string[]) => Promise<StoredResource[]>,
): Promise<AgentCredential | undefined> {
  if (!credential) return undefined
  const [owner] = credential.ownerId === null ? [] : await find([credential.ownerId])
  if (!owner || owner.fields.active === false) return undefined
  // What is stored has passed the form of its resource.
  return { id: credential.id, acl: credential.fields.acl as readonly string[], ownerId: owner.id }
}
