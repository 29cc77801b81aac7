/** Lets in the addresses that the rules let in: connections on TCP and TLS edges, requests on routes. */
import { compileIpRules } from '../../lib/ip-rules.ts'
import type { ConnectionVerdict, Peer, Phases } from '../phases.ts'

/** Networks in CIDR form: D36, an address passes when one of `allow` holds it and none of `deny` does. */
export interface IpRestrictionSettings {
  readonly allow: readonly string[]
  readonly deny: readonly string[]
}

export function compileIpRestriction({ allow, deny }: IpRestrictionSettings): Phases {
  const isLetIn = compileIpRules([
    ...allow.map((network) => ({ action: 'allow', network }) as const),
    ...deny.map((network) => ({ action: 'deny', network }) as const),
  ])
  // A connection has one peer and many requests, and the rules are a list that is walked.
  const known = new WeakMap<Peer, boolean>()
  const decide = (peer: Peer): boolean => {
    let passes = known.get(peer)
    if (passes === undefined) {
      passes = isLetIn(peer.ip)
      known.set(peer, passes)
    }
    return passes
  }
  return {
    accept: (peer) => (decide(peer) ? undefined : refused),
    request({ peer, found }) {
      const passes = decide(peer)
      found.set('ip_policy.decision', passes ? 'allow' : 'block')
      return passes ? undefined : refused
    },
  }
}

const refused: ConnectionVerdict = { refuse: 'IP_REFUSED' }
