/** Which edge a request is for: the edge of its `Host`, if this connection may reach it. */

import type { VisitorErrorCode } from '../../../model/visitor-errors.ts'
import type { TlsDemands, TlsFacts } from '../../../modules/phases.ts'
import type { Replay } from '../../requests/running-captures.ts'
import type { Edge } from '../compiled-edge.ts'
import type { HttpVisit } from '../edge-router.ts'
import { isVersionAtLeast } from '../tls-versions.ts'

/** A visitor's connection: what all its requests share. */
export interface VisitorConnection extends Pick<HttpVisit, 'peer' | 'tls' | 'edge'> {
  /** The `tlsKey` that the edge had at the handshake. */
  readonly tlsKey: string
  /**
   * The edge that served the last request, as compiled then, if any; before the first request, that of the handshake.
   */
  current: Edge | undefined
  /** The host of its last request, as sent and as parsed; before the first, the name of the handshake. */
  asked: { readonly authority: string; readonly host: string } | undefined
  /** Set when its one request repeats another. */
  readonly replay?: Replay | undefined
}

export interface FindEdge {
  /** The edge of a name on the TLS listener. */
  find(host: string): Edge | undefined
  /** The endpoint of a name on the plain listener. */
  findPlain(host: string): Edge | undefined
}

/** The edge, or why there is none; `to_https` redirects to TLS. */
export function pickEdge(
  host: string,
  connection: VisitorConnection,
  edges: FindEdge,
): Edge | VisitorErrorCode | 'to_https' {
  if (connection.tls === undefined) {
    const plain = edges.findPlain(host)
    if (plain) return plain
    // TLS edges too: a visitor that asks for one over HTTP expects HTTP behind its TLS.
    return edges.find(host) ? 'to_https' : 'ENDPOINT_OFFLINE'
  }
  // Looked up by name: `connection.edge` may have changed since the handshake.
  const edge = edges.find(host)
  if (!edge) {
    connection.current = undefined
    return 'ENDPOINT_OFFLINE'
  }
  if (edge !== connection.current) {
    if (!mayReach(edge, host, connection, connection.tls)) return 'MISDIRECTED'
    connection.current = edge
  }
  return edge
}

/**
 * whether the connection passed everything that the edge would ask of a new one. Since the handshake the name
 * may have come online, moved to another agent, or changed.
 */
function mayReach(edge: Edge, host: string, connection: VisitorConnection, tls: TlsFacts): boolean {
  if (edge.kind !== 'https' || edge.tls === null) return false
  if (edge.id !== connection.edge?.id && host !== tls.serverName) return false
  const isSameTls = edge.tlsKey === connection.tlsKey
  // The name was not served at the handshake, so nothing was demanded then; the edge's demands must happen to be met.
  if (!isSameTls && (connection.edge !== undefined || !meets(tls, edge.tls))) return false
  const reached = { edgeId: edge.id, serverName: tls.serverName }
  return (
    edge.accept.every((accept) => accept(connection.peer, reached) === undefined) &&
    edge.handshake.every((handshake) => handshake(tls, connection.peer, reached) === undefined)
  )
}

/**
 * Whether a handshake without demands happens to meet these. The certificate does not matter: the visitor has accepted
 * the one it was shown.
 */
function meets({ version }: TlsFacts, { minVersion = 'TLSv1.2', clientAuthorities }: TlsDemands): boolean {
  return clientAuthorities === undefined && isVersionAtLeast(version, minVersion)
}
