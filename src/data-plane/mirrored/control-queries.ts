/** Calls of a data plane to the control plane on behalf of its doors and edges. */
import { LOOP_PRICE } from '../../lib/patterns/pattern-price.ts'
import { Secret } from '../../lib/secrets/secret.ts'
import type { ControlLink } from '../../link/planes/control-link.ts'
import type { AgentModules } from '../../model/edge-config.ts'
import { BindRefusal, type EndpointRequest, type ServedEndpoint } from '../../model/endpoint.ts'
import { agentModules, bindPrice } from '../../modules/agent-options/options.ts'
import type { RequestKey } from '../../modules/saml/request-key.ts'

/** How long agents and visitors wait for what the control plane looks up, in milliseconds. */
export const LOOKUP_MS = 6000

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

/** Asks who holds an address, and claims it. */
export function addressesOf(control: ControlLink) {
  const claimOf = ({ place, tunnel: { tunnelId }, sessionId }: EndpointRequest, served: ServedEndpoint) => {
    return { place, tunnelId, sessionId, ...served }
  }
  return {
    holdersOfName: (name: string) => control.ask('holdersOfName', name, { withinMs: LOOKUP_MS }),
    holdersOfPort: (port: number) => control.ask('holdersOfPort', port, { withinMs: LOOKUP_MS }),
    claim: (request: EndpointRequest, served: ServedEndpoint) =>
      control.ask('claim', claimOf(request, served), { withinMs: LOOKUP_MS }),
    // A control plane of an earlier version does not know this call.
    whyTaken: (request: EndpointRequest, served: ServedEndpoint) =>
      control.ask('whyTaken', claimOf(request, served), { withinMs: LOOKUP_MS }).catch(() => undefined),
    unclaim: ({ place, tunnel: { tunnelId }, pool }: EndpointRequest) =>
      control.tell('unclaim', { place, tunnelId, pool }),
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
