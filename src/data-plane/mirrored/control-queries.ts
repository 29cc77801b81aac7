/** Calls of a data plane to the control plane on behalf of its listeners and edges. */
import { Secret } from '../../lib/secrets/secret.ts'
import type { ControlLink } from '../../link/planes/control-link.ts'
import type { RequestKey } from '../../modules/saml/request-key.ts'

/** The key that signs requests to identity providers: fetched once, and again after a failure. */
export function requestKeyOf(control: ControlLink): () => Promise<RequestKey> {
  let found: Promise<RequestKey> | undefined
  return () => {
    found ??= control.ask('requestKey', null).then(
      ({ certificate, key }) => ({ certificate, key: new Secret(key) }),
      (error: unknown) => {
        found = undefined
        throw error
      },
    )
    return found
  }
}
