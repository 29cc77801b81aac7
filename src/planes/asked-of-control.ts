/** What a data plane asks of the control plane for its doors and edges. */
import { LOOP_PRICE } from '../lib/patterns/pattern-price.ts'
import { Secret } from '../lib/secrets/secret.ts'
import { BindRefusal, type EndpointRequest } from '../model/endpoint.ts'
import { type AgentModules, agentModules, bindPrice } from '../modules/agent-options/options.ts'
import type { RequestKey } from '../modules/saml/request-key.ts'
import type { ControlLink } from './control-link.ts'

/** How long agents and visitors wait for what the control plane looks up, in milliseconds. */
export const LOOKUP_MS = 6000

/** The key that signs requests to identity providers: asked for once, and again when that failed. */
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

/** The modules that a bind asks for: those that are cheap to check are checked here. */
export async function bindModules(control: ControlLink, request: EndpointRequest): Promise<AgentModules | BindRefusal> {
  const { proto, opts, credentialId } = request
  if (bindPrice(opts) <= LOOP_PRICE) return agentModules(proto, opts)
  try {
    return await control.ask('bindModules', { credentialId, proto, opts })
  } catch (error) {
    if (error instanceof BindRefusal) return error
    throw error
  }
}
