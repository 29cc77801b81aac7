/** What a TLS client needs to trust an authority, made once for each: making it takes as long as part of a handshake. */
import { createSecureContext, type SecureContext } from 'node:tls'

const contexts = new Map<string, SecureContext>()

/** `ca` is in PEM. Node ignores other options of a context, such as a client certificate, when it gets a whole one. */
export function trustedContext(ca: string): SecureContext {
  const context = contexts.get(ca) ?? createSecureContext({ ca })
  contexts.set(ca, context)
  return context
}
