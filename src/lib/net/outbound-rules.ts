/** Which addresses requests to URLs set by users may reach (D53). */
import { compileIpRules } from './ip-rules.ts'
import type { ListenerUse } from './own-listeners.ts'
import { isPublicAddress } from './public-address.ts'

/** What the operator allows beside public addresses: a network, at every port or one, or what a name resolves to at one port. */
export type OutboundAllowed =
  | { readonly network: string; readonly port?: number }
  | { readonly name: string; readonly port: number }

export interface OutboundTarget {
  /** As the URL names it. */
  readonly host: string
  /** The one that is dialled; an IPv4-mapped one in the form of IPv4. */
  readonly address: string
  readonly port: number
}

/**
 * `listenerAt` says whether this server listens at an address. Its listeners for visitors need an entry with a port; the others
 * may trust local requests, which users must not make, so no entry allows these.
 */
export function outboundRules(
  allowed: readonly OutboundAllowed[],
  listenerAt: (address: string, port: number) => ListenerUse | undefined,
): (target: OutboundTarget) => boolean {
  const tests = allowed.map((each) => {
    if ('name' in each) return { hasPort: true, test: ({ host, port }: OutboundTarget) => isEntry(each, host, port) }
    const { network, port } = each
    const isInside = compileIpRules([{ action: 'allow', network }])
    return {
      hasPort: port !== undefined,
      test: (target: OutboundTarget) => (port ?? target.port) === target.port && isInside(target.address),
    }
  })
  return (target) => {
    const own = listenerAt(target.address, target.port)
    if (own === 'control') return false
    if (!own && isPublicAddress(target.address)) return true
    return tests.some(({ hasPort, test }) => (hasPort || !own) && test(target))
  }
}

function isEntry(entry: { readonly name: string; readonly port: number }, host: string, port: number): boolean {
  return port === entry.port && host.replace(/\.$/, '') === entry.name
}
