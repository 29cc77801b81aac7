/** The key that signs requests to identity providers: made when it is first needed, shared by the nodes, sealed at rest. */

import type { Sealer } from '../../lib/secrets/seal.ts'
import { Secret } from '../../lib/secrets/secret.ts'
import { makeRequestKey, type RequestKey } from '../../modules/saml/request-key.ts'
import type { Store } from '../store/store.ts'
import type { Writer } from '../store/writer.ts'
import type { Reseal } from './reseal-database.ts'
import { holdKey } from './sealing.ts'

/** The stored facts: its certificate in the open, and the key, sealed. */
const REQUEST_KEY = 'saml_request_key'

/** The context under which the key is sealed. */
const CONTEXT = `meta/${REQUEST_KEY}/key`

interface Kept {
  readonly certificate: string
  readonly key: string
}

/**
 * Gives a function that returns the key of `store`. Do not call that inside a transaction, since it may need one of its own.
 */
export function requestKeyOf(store: Store, sealer: Sealer, now: () => number): () => Promise<RequestKey> {
  let found: Promise<RequestKey> | undefined
  const find = async (): Promise<RequestKey> => {
    const known = await store.read((reader) => reader.meta(REQUEST_KEY))
    if (known !== undefined) return opened(known)
    const { certificate, key } = await makeRequestKey(now())
    // Another node may have been faster; then its key is used.
    const text = await store.write(async (writer) => {
      await holdKey(writer, sealer)
      const kept: Kept = { certificate, key: sealer.seal(key.reveal(), CONTEXT) }
      return writer.keepMeta(REQUEST_KEY, JSON.stringify(kept))
    })
    return opened(text)
  }
  const opened = (text: string): RequestKey => {
    const { certificate, key } = JSON.parse(text) as Kept // written above
    return { certificate, key: new Secret(sealer.open(key, CONTEXT)) }
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

/** Seals the key again; returns the number of keys. */
export async function resealRequestKey(writer: Writer, reseal: Reseal): Promise<number> {
  const text = await writer.meta(REQUEST_KEY)
  if (text === undefined) return 0
  const { certificate, key } = JSON.parse(text) as Kept // written above
  const kept: Kept = { certificate, key: reseal(key, CONTEXT) }
  await writer.setMeta(REQUEST_KEY, JSON.stringify(kept))
  return 1
}
