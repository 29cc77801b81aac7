/** What agents prove themselves with, as the store knows it: authtokens now, and the ACL they carry at this moment. */
import type { Secret } from '../lib/secret.ts'
import { AUTHTOKENS, credentials } from '../resources/credentials.ts'
import type { StoredResource } from '../store/reader.ts'
import type { Store } from '../store/store.ts'
import { tokenHash, wellFormedToken } from './principal.ts'

export interface AgentCredential {
  readonly id: string
  readonly acl: readonly string[]
}

/** How long a lookup may take, in milliseconds: an agent must hear why before its own time for authentication is over. */
const LOOKUP_MS = 5000

/** The credential whose token this is; undefined when it opens nothing. */
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

/** The same credential later: its ACL may be another, or it may be gone. */
export async function currentCredential(store: Store, id: string): Promise<AgentCredential | undefined> {
  return store.read(
    async (reader) => usable(await reader.resource(credentials.kind, id), (ids) => reader.resources(ids)),
    { withinMs: LOOKUP_MS },
  )
}

/** Whom a credential belongs to; undefined when it is gone. */
export async function ownerOfCredential(store: Store, id: string): Promise<string | undefined> {
  const found = await store.read((reader) => reader.resource(credentials.kind, id))
  return found?.ownerId ?? undefined
}

/** A bot that was put to sleep takes its credentials along, as it does its keys. */
async function usable(
  credential: StoredResource | undefined,
  find: (ids: readonly string[]) => Promise<StoredResource[]>,
): Promise<AgentCredential | undefined> {
  if (!credential) return undefined
  const [owner] = credential.ownerId === null ? [] : await find([credential.ownerId])
  if (!owner || owner.fields.active === false) return undefined
  // What is stored has passed the form of its resource.
  return { id: credential.id, acl: credential.fields.acl as readonly string[] }
}
