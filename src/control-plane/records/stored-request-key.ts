/** The key that signs requests to identity providers: made when it is first needed, shared by the nodes, sealed at rest. */
import type { Sealer } from '../../lib/secrets/seal.ts'
import { Secret } from '../../lib/secrets/secret.ts'
import { makeRequestKey, type RequestKey } from '../../modules/saml/request-key.ts'
import type { Store } from '../store/store.ts'
import { sealedFact } from './sealed-fact.ts'

export const requestKeyFact = sealedFact<{ readonly certificate: string; readonly key: string }>(
  'saml_request_key',
  'the key that signs requests to identity providers',
)

/**
 * Gives a function that returns the key of `store`. Do not call that inside a transaction, since it may need one of its own.
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
