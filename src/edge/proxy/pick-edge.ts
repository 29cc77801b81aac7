/** Which edge a request is for: the one of its `Host`, if this connection is one that may reach it. */
import type { VisitorErrorCode } from '../../model/visitor-errors.ts'
import type { Peer, TlsDemands, TlsFacts } from '../../modules/phases.ts'
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
  /** The edge that served its last request, as it was compiled then, or none did; that of the handshake before the first. */
  current: Edge | undefined
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
    // Names of TLS edges too: whoever asks for one by HTTP takes what ends its TLS, here or upstream, to speak HTTP.
    return edges.find(host) ? 'to_https' : 'ENDPOINT_OFFLINE'
  }
  // By name and not `connection.edge` itself, which may have changed since the handshake.
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
 * whether a connection went through all that the edge would ask for if it were opened now. The name in its
 * handshake may have come online since, gone from one agent to the next, or changed.
 */
function mayReach(edge: Edge, host: string, connection: VisitorConnection, tls: TlsFacts): boolean {
  if (edge.kind !== 'https' || edge.tls === null) return false
  if (edge.id !== connection.edge?.id && host !== tls.serverName) return false
  const isSameTls = edge.tlsKey === connection.tlsKey
  // A name that nobody served had a handshake without demands, so those of the edge must be none that it did not meet.
  if (!isSameTls && (connection.edge !== undefined || !meets(tls, edge.tls))) return false
  const door = { edgeId: edge.id, serverName: tls.serverName }
  return (
    edge.accept.every((accept) => accept(connection.peer, door) === undefined) &&
    edge.handshake.every((handshake) => handshake(tls, connection.peer, door) === undefined)
  )
}

/** In their order. */
const tlsVersions: readonly string[] = ['TLSv1', 'TLSv1.1', 'TLSv1.2', 'TLSv1.3']

/** Whether a handshake made without demands meets these. The certificate is no guard: the visitor has taken the one it was shown. */
function meets({ version }: TlsFacts, { minVersion = 'TLSv1.2', clientAuthorities }: TlsDemands): boolean {
  return clientAuthorities === undefined && tlsVersions.indexOf(version) >= tlsVersions.indexOf(minVersion)
}
