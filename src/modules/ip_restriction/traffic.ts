/**
 * Lets in the addresses that the rules allow: connections on TCP and TLS edges, requests on routes.
 *
 * @example
 * const phases = compileIpRestriction({ allow: ['192.0.2.0/24'], deny: ['192.0.2.7/32'] })
 * phases.accept({ ip: '192.0.2.8' }) // undefined
 * phases.accept({ ip: '192.0.2.7' }) // { refuse: 'IP_REFUSED' }
 * phases.accept({ ip: '198.51.100.1' }) // { refuse: 'IP_REFUSED' }
 */
import { compilePeerRules } from '../../lib/net/ip-rules.ts'
import type { ConnectionVerdict, Phases } from '../phases.ts'
import type { IpRestrictionSettings } from './form.ts'

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
