/** Finds the caller: from a bearer token to the user or bot that owns the key. */
import { createHash } from 'node:crypto'
import { API_KEY_TOKENS } from '../resources/api-keys.ts'
import type { Store } from '../store/store.ts'

/** A user or bot that called with a key of its own. */
export interface Principal {
  readonly id: string
  readonly role: 'admin' | 'member'
  readonly keyId: string
}

/** The form of tokens: 27 + 1 + 27 characters, or a preset one of another length. Other texts are not looked up. */
const TOKEN = /^[0-9A-Za-z_]{32,255}$/

/** Whether a text has the form of a token. */
export function wellFormedToken(token: string): boolean {
  return TOKEN.test(token)
}

/** The hash by which a token is stored and found, so that a copy of the database gives no access. */
export function tokenHash(token: string): string {
  return createHash('sha256').update(token).digest('hex')
}

/** The principal behind an API key's token; undefined when the token is not valid. */
export async function authenticate(store: Store, token: string): Promise<Principal | undefined> {
  if (!wellFormedToken(token)) return undefined
  // The time of a lookup by hash does not depend on how much of the token is right.
  const [found] = await store.read((reader) => reader.holdersWithOwners(API_KEY_TOKENS, [tokenHash(token)]))
  if (!found || found.owner.fields.active === false) return undefined
  return { id: found.owner.id, role: found.owner.fields.role === 'admin' ? 'admin' : 'member', keyId: found.held.id }
}
