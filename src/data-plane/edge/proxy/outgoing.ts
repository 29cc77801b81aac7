/** A request as it goes upstream, and what its agent learns about the visitor. */
import type { Peer } from '../../../modules/phases.ts'
import type { RequestHead, UpstreamRequest } from '../../requests/http-exchange.ts'
import type { Visit } from '../target.ts'
import type { Routed } from './find-route.ts'
import { forwardedHeaders } from './proxied-headers.ts'

export function outgoingRequest(head: RequestHead, { route, ctx }: Routed): UpstreamRequest {
  const { method, target, body, upgrade } = head
  const headers = forwardedHeaders(ctx)
  // Last, so that no other module sees the changes, and so that they can remove what was just added.
  for (const phase of route.upstream) phase({ headers }, ctx)
  if (ctx.replacedHost !== undefined) headers.set('Host', ctx.replacedHost)
  else if (!headers.has('host')) headers.prepend('Host', ctx.authority)
  return { method, target: ctx.replacedTarget ?? target, headers, body, upgrade }
}

export function visitOf({ edge, ctx }: Routed, { ip, port }: Peer): Visit {
  return {
    ip,
    port,
    proto: edge.kind === 'http' ? 'http' : 'https',
    edge: edge.isEndpoint ? 'none' : 'https',
    passthroughTls: false,
    requestId: ctx.requestId,
  }
}
