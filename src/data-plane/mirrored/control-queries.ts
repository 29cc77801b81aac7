/** Calls of a data plane to the control plane on behalf of its doors and edges. */
import type { Logger } from '../../lib/log/create-log.ts'
import { Secret } from '../../lib/secrets/secret.ts'
import { LinkFault } from '../../link/calls/call-link.ts'
import type { ControlLink } from '../../link/planes/control-link.ts'
import { refusals } from '../../model/bind-refusals.ts'
import { BindRefusal } from '../../model/endpoint.ts'
import type { RequestKey } from '../../modules/saml/request-key.ts'
import type { Binds } from '../edge/agent-endpoints.ts'

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

/**
 * How long an agent waits for its address, in milliseconds: for what the control plane looks up of its credential, of the address
 * and at other nodes.
 */
const BIND_MS = 3 * LOOKUP_MS

/** Asks for the addresses of agents, and gives up those that are not served. */
export function bindsAt(control: ControlLink, log: Logger): Binds {
  const withdraw: Binds['withdraw'] = ({ place, tunnel }) =>
    control.tell('unclaim', { place, tunnelId: tunnel.tunnelId })
  return {
    withdraw,
    async ask(bind) {
      try {
        return await control.ask('bind', bind, { withinMs: BIND_MS, attachedWithinMs: LOOKUP_MS })
      } catch (error) {
        if (error instanceof BindRefusal) return error
        // It may have been granted although its answer was lost.
        withdraw(bind)
        if (!(error instanceof LinkFault)) throw error
        log.warn({ session: bind.sessionId, error }, 'credential cannot be looked up')
        return refusals.storeAway()
      }
    },
  }
}
