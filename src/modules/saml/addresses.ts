/** The addresses of a route towards an identity provider: each name of an edge is a service provider of its own. */
import { uriOf } from '../login/flow.ts'
import { pathOfRoute, type RequestContext } from '../phases.ts'

/**
 * With the route in them: which of an edge's routes a POST is for must be known before its body is read, and that is where
 * its relay state stands.
 */
export const paths = {
  metadata: '/postern/saml/{route}/metadata',
  acs: '/postern/saml/{route}/acs',
  logout: '/postern/saml/{route}/slo',
  /** Where a login that began at the identity provider goes on. */
  unsolicited: '/postern/saml/{route}/in',
} as const

export interface Addresses {
  /** The address of the metadata too. */
  readonly entityId: string
  readonly acs: string
  readonly logout: string
}

/** By the name and port that the visitor knows. */
export function addressesOf(ctx: RequestContext): Addresses {
  return addressesAt(uriOf(ctx, ''), ctx.routeId)
}

export function addressesAt(origin: string, routeId: string): Addresses {
  return {
    entityId: origin + pathOfRoute(paths.metadata, routeId),
    acs: origin + pathOfRoute(paths.acs, routeId),
    logout: origin + pathOfRoute(paths.logout, routeId),
  }
}

/** The addresses of the same name and route as one of them. */
export function addressesBeside(acs: string): Addresses {
  const { origin, pathname } = new URL(acs)
  return addressesAt(origin, pathname.split('/')[3] ?? '')
}
