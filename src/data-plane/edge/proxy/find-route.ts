/** Finds the route of a request by its head: every step in order, all of them before any module. */
import { publicAuthority } from '../../../lib/net/public-authority.ts'
import { flatText } from '../../../lib/text/flat-text.ts'
import type { VisitorErrorCode } from '../../../model/visitor-errors.ts'
import { hostOf } from '../../requests/host-authority.ts'
import type { RequestHead } from '../../requests/http-exchange.ts'
import { brokenCode, type Edge, type Route } from '../compiled-edge.ts'
import type { AskedFor } from '../reserved-paths.ts'
import { Context } from './context.ts'
import { asSent, hasOtherReadings, holdsForAllReadings, isPlain, splitTarget } from './path-readings.ts'
import { pickEdge, type VisitorConnection } from './pick-edge.ts'
import { stripRequest } from './proxied-headers.ts'
import type { ProxyTools } from './proxy-tools.ts'
import type { VisitorBody } from './request-body.ts'

export interface Search {
  readonly head: RequestHead
  readonly body: VisitorBody
  readonly connection: VisitorConnection
  readonly startedAt: number
  readonly tools: ProxyTools
}

/** How far the search got; the log uses it too. */
export interface Found {
  readonly host: string | undefined
  readonly edge: Edge | undefined
  readonly route: Route | undefined
  readonly ctx: Context | undefined
  /** Why the request is refused. */
  readonly fault: VisitorErrorCode | undefined
  /** Where the visitor is redirected. */
  readonly location: string | undefined
  /** Resolves when it is known whether another node serves the host; then the search starts again. */
  readonly pending: Promise<void> | undefined
}

/** A request that has found its route. */
export interface Routed extends Found {
  readonly edge: Edge
  readonly route: Route
  readonly ctx: Context
}

const waited = { hasWaited: true }
const notWaited = { hasWaited: false }

/** For a request that was not routed. */
export const nothingFound: Found = foundWith({})

function isRouted(result: Found): result is Routed {
  return result.ctx !== undefined
}

/** The route of a request that is known to have one. */
export function routeOrThrow(found: Found): Routed {
  if (!isRouted(found)) throw new Error('a request is answered before it is routed')
  return found
}

/** An endpoint disappears with its agent; an edge remains, with nothing behind it. */
export function offlineCode({ edge }: Routed): VisitorErrorCode {
  return edge.isEndpoint ? 'ENDPOINT_OFFLINE' : 'BACKEND_OFFLINE'
}

/** Also removes headers that visitors must not send. `before` is the former result when the search starts again. */
export function findRoute(search: Search, before = nothingFound): Found {
  const { head, connection, tools } = search
  // D64: before the rules of any edge, and again for every request on a kept connection.
  if (!tools.admits(connection.peer)) return foundWith({ fault: 'IP_REFUSED' })

  // The requested host, normalised for everything below.
  const host = askedHost(connection, head.authority)
  if (host === undefined) return foundWith({ fault: 'BAD_VISITOR_REQUEST' })

  // The edge of that name, if this connection may reach it.
  const visitor = before.pending ? waited : notWaited
  const pending = tools.lookUp?.(connection.tls ? 'secure' : 'plain', host, visitor, connection.peer.ip)
  if (pending === 'busy') return foundWith({ host, fault: 'LOOK_UP_BUSY' })
  if (pending) return foundWith({ host, pending })
  const edge = pickEdge(host, connection, tools.edges)
  if (edge === 'to_https') return foundWith({ host, location: httpsUrl(host, tools.publicHttpsPort(), head.target) })
  if (typeof edge === 'string') return foundWith({ host, fault: edge })
  // Before any module runs, so that none mistakes a header of the visitor for one of ours (D42b), and before captures.
  const isProxied = stripRequest(head.headers, connection.peer)
  if (isProxied && !connection.replay) tools.onProxied?.(connection.peer.ip)
  const broken = brokenCode(edge)
  if (broken !== undefined) return foundWith({ host, edge, fault: broken })

  // The path goes upstream as it was sent: `chooseRoute` refuses one that the service could read as another route (D63).
  const { path, query } = splitTarget(head.target)
  const reserving = routeReserving(edge, { host, path, query, headers: head.headers })
  const route = reserving ?? chooseRoute(edge, path)
  if (typeof route === 'string') return foundWith({ host, edge, fault: route })

  const ctx = new Context(search, { edgeId: edge.id, routeId: route.id, host, query, reservedPath: reserving && path })
  const fault = route.broken === undefined ? undefined : 'MODULE_UNAVAILABLE'
  return { host, edge, route, ctx, fault, location: undefined, pending: undefined }
}

/** D63: the one route that every reading of the path leads to. */
export function chooseRoute(
  edge: Pick<Edge, 'route' | 'everyPath' | 'reserved'>,
  sentPath: string,
): Route | VisitorErrorCode {
  if (isPlain(sentPath)) return edge.route(sentPath) ?? 'NO_ROUTE'
  const path = asSent(sentPath)
  if (path === undefined) return 'BAD_VISITOR_REQUEST'
  const route = edge.route(path)
  if (hasOtherReadings(path)) {
    // The module would decide by one reading while the service acts on another.
    if (route?.readsPath) return 'AMBIGUOUS_PATH'
    const { everyPath, reserved } = edge
    const isSame = (reading: string): boolean => edge.route(reading) === route && !reserved?.has(reading)
    const isLookedAt = everyPath === undefined || reserved !== undefined
    if (isLookedAt && !holdsForAllReadings(path, isSame)) return 'AMBIGUOUS_PATH'
  }
  return route ?? 'NO_ROUTE'
}

/** The route whose module reserves this path. */
function routeReserving(edge: Edge, asked: Omit<AskedFor, 'routeOf'>): Route | undefined {
  if (!edge.reserved?.has(asked.path)) return undefined
  const routeOf = (path: string): Route | undefined => {
    const route = chooseRoute(edge, path)
    return typeof route === 'string' ? undefined : route
  }
  return edge.reserved.routeFor({ ...asked, routeOf })
}

/** One object shape for every outcome, since the log reads it for each request. */
function foundWith({ host, edge, fault, location, pending }: Partial<Found>): Found {
  return { host, edge, route: undefined, ctx: undefined, fault, location, pending }
}

/** The host of a request; nearly always the same as before on this connection. */
function askedHost(connection: VisitorConnection, authority: string): string | undefined {
  if (connection.asked?.authority === authority) return connection.asked.host
  const host = hostOf(authority)
  if (host !== undefined) connection.asked = { authority, host: flatText(host) }
  return host
}

/** D42a: the same URL on the TLS listener. */
function httpsUrl(host: string, port: number, target: string): string {
  return `https://${publicAuthority('https', host, port)}${target === '*' ? '/' : target}`
}
