/** Relays one connection of a TCP or TLS edge: dials a target, and moves bytes until both ends are done. */
import type { ByteStream } from '../../lib/bytes/byte-stream.ts'
import { type RelayResult, relay } from '../../lib/bytes/relay.ts'
import type { VisitorErrorCode } from '../../model/visitor-errors.ts'
import type { Peer } from '../../modules/phases.ts'
import type { Edge } from './compiled-edge.ts'
import type { Visit } from './dial.ts'
import { dialFirst } from './dial.ts'

/** The outcome of a connection: one line of the access log. */
export interface ConnectionRecord {
  readonly edge: string
  readonly peer: Peer
  readonly serverName: string | undefined
  readonly bytesIn: number
  readonly bytesOut: number
  /** The service that was dialled. */
  readonly target: string | undefined
  /** Why it was refused, or cut short. */
  readonly fault: VisitorErrorCode | 'CUT' | undefined
}

export interface Relaying extends Pick<ConnectionRecord, 'peer' | 'serverName'> {
  readonly edge: Edge
  readonly passthroughTls: boolean
  /** How long the connection may be idle, in milliseconds. */
  readonly idleMs: number
  readonly onDone: (record: ConnectionRecord) => void
}

/** Relays `visitor` to the backend of `edge`; no byte of the stream may have been read yet. */
export async function relayConnection(visitor: ByteStream, options: Relaying): Promise<void> {
  const { edge, peer, serverName, passthroughTls, idleMs, onDone } = options
  const record = { edge: edge.id, peer, serverName, bytesIn: 0, bytesOut: 0, target: undefined }
  const visit: Visit = {
    ip: peer.ip,
    port: peer.port,
    proto: edge.kind === 'tls' ? 'tls' : 'tcp',
    edge: edge.isEndpoint ? 'none' : edge.kind === 'tls' ? 'tls' : 'tcp',
    passthroughTls,
  }
  await edge.backend?.found?.()
  const dialled = edge.backend
    ? await dialFirst({ targets: edge.backend.targets(), visit, ends: peer, offline: 'BACKEND_OFFLINE' })
    : 'NO_BACKEND'
  if (typeof dialled === 'string') {
    visitor.reset()
    onDone({ ...record, fault: dialled })
    return
  }
  const { stream, key } = dialled
  relay(visitor, stream, {
    idleMs,
    onDone: ({ there, back, error }: RelayResult) =>
      onDone({ ...record, bytesIn: there, bytesOut: back, target: key, fault: error ? 'CUT' : undefined }),
  })
}
