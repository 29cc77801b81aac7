/** Lets in the addresses that the rules allow: connections on TCP and TLS edges, requests on routes. */
import { compilePeerRules } from '../../lib/net/ip-rules.ts'
import type { ConnectionVerdict, Phases } from '../phases.ts'

/** Networks in CIDR form: D36, an address passes when one of `allow` holds it and none of `deny` does. */
export interface IpRestrictionSettings {
  readonly allow: readonly string[]
  readonly deny: readonly string[]
}

export function compileIpRestriction({ allow, deny }: IpRestrictionSettings): Phases {
  const isLetIn = compilePeerRules([
    ...allow.map((network) => ({ action: 'allow', network }) as const),
    ...deny.map((network) => ({ action: 'deny', network }) as const),
  ])
  return {
    accept: (peer) => (isLetIn(peer) ? undefined : refused),
    request({ peer, found }) {
      const passes = isLetIn(peer)
      found.set('ip_policy.decision', passes ? 'allow' : 'block')
      return passes ? undefined : refused
    },
  }
}

const refused: ConnectionVerdict = { refuse: 'IP_REFUSED' }
