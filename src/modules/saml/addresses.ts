/** The URLs of a route for an identity provider. */
import { uriOf } from '../login/local-path.ts'
import { pathOfRoute, type RequestContext } from '../phases.ts'

/**
 * The paths hold the id of the route: a POST must be matched to a route before its body is read, and the relay state is in
 * the body.
 */
export const paths = {
  metadata: '/postern/saml/{route}/metadata',
  acs: '/postern/saml/{route}/acs',
  logout: '/postern/saml/{route}/slo',
  /** Where a login that began at the identity provider continues. */
  unsolicited: '/postern/saml/{route}/in',
} as const

/** Each name of an edge is a separate service provider. */
export interface SamlAddresses {
  /** Also the URL of the metadata. */
  readonly entityId: string
  readonly acs: string
  readonly logout: string
}

/** The URLs with the name and port that the visitor used. */
export function addressesOf(ctx: RequestContext): SamlAddresses {
  return addressesAt(uriOf(ctx, ''), ctx.routeId)
}

export function addressesAt(origin: string, routeId: string): SamlAddresses {
  return {
    entityId: origin + pathOfRoute(paths.metadata, routeId),
    acs: origin + pathOfRoute(paths.acs, routeId),
    logout: origin + pathOfRoute(paths.logout, routeId),
  }
}

/** The other URLs of the same name and route, from the one for answers. */
export function addressesBeside(acs: string): SamlAddresses {
  const { origin, pathname } = new URL(acs)
  return addressesAt(origin, pathname.split('/')[3] ?? '')
}
