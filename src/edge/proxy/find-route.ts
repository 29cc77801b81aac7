/** From the head of a request to the route that serves it: each step in its place, and all of them before any module. */
import type { VisitorErrorCode } from '../../model/visitor-errors.ts'
import type { Edge, Route } from '../edge.ts'
import type { RequestHead } from '../exchange.ts'
import { hostOf } from './authority.ts'
import { Context } from './context.ts'
import { stripRequest } from './headers.ts'
import { canonicalPath, splitTarget } from './path.ts'
import { pickEdge, type VisitorConnection } from './pick-edge.ts'
import type { ProxyTools } from './proxy-tools.ts'
import type { VisitorBody } from './request-body.ts'

export interface Search {
  readonly head: RequestHead
  readonly body: VisitorBody
  readonly connection: VisitorConnection
  readonly startedAt: number
  readonly tools: ProxyTools
}

/** A request that has found its route. */
export interface Routed {
  readonly edge: Edge
  readonly route: Route
  readonly ctx: Context
}

/** How far the search came, for the log too. */
export interface Found {
  readonly host?: string
  readonly edge?: Edge
  readonly routed?: Routed
  /** Why it ends here. */
  readonly fault?: VisitorErrorCode
  /** Where the visitor should ask instead. */
  readonly location?: string
}

/** Changes the headers of the request: what a visitor cannot say is gone from them. */
export function findRoute({ head, body, connection, startedAt, tools }: Search): Found {
  // Who is asked for, in the one spelling that all that follows reads.
  const host = hostOf(head.authority)
  if (host === undefined) return { fault: 'BAD_VISITOR_REQUEST' }

  // Whose name that is, and whether this connection may reach it.
  const edge = pickEdge(host, connection, tools.edges)
  if (edge === 'to_https') return { host, location: httpsUrl(host, tools.publicHttpsPort(), head.target) }
  if (typeof edge === 'string') return { host, fault: edge }
  if (edge.broken !== undefined) return { host, edge, fault: 'MODULE_UNAVAILABLE' }

  // Design §6 rule 4: decisions are made by the canonical path, what goes upstream is what was sent.
  const { path: sentPath, query } = splitTarget(head.target)
  const path = canonicalPath(sentPath)
  if (path === undefined) return { host, edge, fault: 'BAD_VISITOR_REQUEST' }

  const route = edge.route(path)
  if (route === undefined) return { host, edge, fault: 'NO_ROUTE' }

  // Design §6 rule 5: before any module looks, so that none takes the visitor's word for ours.
  stripRequest(head.headers)
  const { peer, tls } = connection
  const { newRequestId } = tools
  const ids = { edgeId: edge.id, routeId: route.id }
  const ctx = new Context({ head, peer, tls, ...ids, host, path, query, startedAt, body, newRequestId })
  const routed = { edge, route, ctx }
  return route.broken === undefined ? { host, edge, routed } : { host, edge, routed, fault: 'MODULE_UNAVAILABLE' }
}

/** D42a */
function httpsUrl(host: string, port: number, target: string): string {
  return `https://${host}${port === 443 ? '' : `:${port}`}${target === '*' ? '/' : target}`
}
