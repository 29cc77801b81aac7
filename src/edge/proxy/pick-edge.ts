/** Which edge a request is for: the one of its `Host`, if this connection is one that may reach it. */
import type { VisitorErrorCode } from '../../model/visitor-errors.ts'
import type { Peer, TlsFacts } from '../../modules/phases.ts'
import type { Edge } from '../edge.ts'

/** A visitor's connection: what is the same for all its requests. */
export interface VisitorConnection {
  readonly peer: Peer
  /** Undefined on the plain listener. */
  readonly tls: TlsFacts | undefined
  /** The edge of the name in the handshake; undefined on the plain listener, and for a name that nobody serves. */
  readonly edge: Edge | undefined
  /** The `tlsKey` of that edge when the handshake was made. */
  readonly tlsKey: string
  /** What its last request asked for, as it was sent and as it was read. */
  asked: { readonly authority: string; readonly host: string } | undefined
}

export interface FindEdge {
  /** The edge of a name on the TLS listener. */
  find(host: string): Edge | undefined
  /** The endpoint of a name on the plain listener. */
  findPlain(host: string): Edge | undefined
}

/** An edge, or why there is none for this request; `to_https` asks to come back over TLS. */
export function pickEdge(
  host: string,
  connection: VisitorConnection,
  edges: FindEdge,
): Edge | VisitorErrorCode | 'to_https' {
  if (connection.tls === undefined) {
    const plain = edges.findPlain(host)
    if (plain) return plain
    return edges.find(host)?.kind === 'https' ? 'to_https' : 'ENDPOINT_OFFLINE'
  }
  // By name and not `connection.edge` itself, which may have changed since the handshake.
  const edge = edges.find(host)
  if (!edge) return 'ENDPOINT_OFFLINE'
  // what guards an edge in the handshake was asked for on a connection made to that edge alone, and as it is now.
  // A name that went from one agent to the next is asked for in the handshake as it would be now.
  const isSame = edge.id === connection.edge?.id || host === connection.tls.serverName
  const isOwn = edge.kind === 'https' && isSame && edge.tlsKey === connection.tlsKey
  return isOwn ? edge : 'MISDIRECTED'
}
