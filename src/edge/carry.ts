/** Carries one connection of a TCP or TLS edge: asks the modules, dials a target, and moves bytes until both ends are done. */
import type { ByteStream } from '../lib/byte-stream.ts'
import { type RelayResult, relay } from '../lib/relay.ts'
import { DialFault } from '../model/dial.ts'
import type { VisitorErrorCode } from '../model/visitor-errors.ts'
import type { Peer } from '../modules/phases.ts'
import type { Edge } from './edge.ts'
import { proxyHeaderOf } from './proxy-protocol.ts'
import type { Visit } from './target.ts'

/** How long nothing may move on a connection, in milliseconds. */
const IDLE_MS = 5 * 60_000

/** What became of a connection: one line of the access log. */
export interface ConnectionRecord {
  readonly edge: string
  readonly peer: Peer
  readonly serverName: string | undefined
  readonly bytesIn: number
  readonly bytesOut: number
  /** The service that was dialled. */
  readonly target: string | undefined
  /** Why it was not served, or not to its end. */
  readonly fault: VisitorErrorCode | 'CUT' | undefined
}

export interface Carrying {
  readonly edge: Edge
  readonly peer: Peer
  readonly serverName?: string
  readonly passthroughTls: boolean
  readonly onDone: (record: ConnectionRecord) => void
}

/** Hands `visitor` to the backend of `edge`; nothing of it was read yet that is not in the stream. */
export async function carry(visitor: ByteStream, carrying: Carrying): Promise<void> {
  const { edge, peer, serverName, passthroughTls, onDone } = carrying
  const record = { edge: edge.id, peer, serverName, bytesIn: 0, bytesOut: 0, target: undefined }
  const visit: Visit = {
    ip: peer.ip,
    port: peer.port,
    proto: edge.kind === 'tls' ? 'tls' : 'tcp',
    edge: edge.isEndpoint ? 'none' : edge.kind === 'tls' ? 'tls' : 'tcp',
    passthroughTls,
  }
  const dialled = await dialFirst(edge, visit)
  if (typeof dialled === 'string') {
    visitor.reset()
    onDone({ ...record, fault: dialled })
    return
  }
  const { stream, key, proxyHeader } = dialled
  if (proxyHeader !== 0) stream.write(proxyHeaderOf(proxyHeader, peer))
  relay(visitor, stream, {
    idleMs: IDLE_MS,
    onDone: ({ there, back, error }: RelayResult) =>
      onDone({ ...record, bytesIn: there, bytesOut: back, target: key, fault: error ? 'CUT' : undefined }),
  })
}

/** The first target that can be dialled. */
async function dialFirst(
  { backend }: Edge,
  visit: Visit,
): Promise<{ stream: ByteStream; key: string; proxyHeader: 0 | 1 | 2 } | VisitorErrorCode> {
  if (!backend) return 'NO_BACKEND'
  let fault: VisitorErrorCode = 'BACKEND_OFFLINE'
  for (const target of backend.targets()) {
    // an HTTP response has no meaning on a raw connection.
    if (target.kind === 'fixed') continue
    const stream = await target.open(visit)
    if (!(stream instanceof DialFault)) return { stream, key: target.key, proxyHeader: target.proxyHeader }
    if (stream.reason === 'busy') fault = 'BACKEND_BUSY'
    else if (stream.reason !== 'offline') fault = 'UPSTREAM_UNREACHABLE'
  }
  return fault
}
