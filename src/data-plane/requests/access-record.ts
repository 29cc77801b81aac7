/** The outcome of one request: one line of the access log. */

import type { Peer } from '../../lib/net/peer.ts'
import type { VisitorErrorCode } from '../../model/visitor-errors.ts'
import type { Replay } from './running-captures.ts'

export interface AccessRecord {
  readonly peer: Peer
  /** In milliseconds since 1970. */
  readonly startedAt: number
  /** In milliseconds. */
  readonly durationMs: number
  /** Undefined when it was refused before it got an id; ids are drawn when first needed. */
  readonly request: { readonly requestId: string } | undefined
  readonly scheme: 'http' | 'https'
  readonly version: '1.1' | '2'
  readonly method: string
  /** Lower case, without port; as sent when it is not a host. */
  readonly host: string
  /** As sent, without the query, which may hold secrets. */
  readonly path: string
  /** Path and query as sent. */
  readonly sentTarget: string
  readonly edge: string | undefined
  /** The owner of the endpoint; undefined for an edge. */
  readonly ownerId: string | undefined
  readonly route: string | undefined
  /** The service that the request went to. */
  readonly target: string | undefined
  readonly isReused: boolean
  /**
   * When all modules had let it pass, when there was a connection to the service, and when the answer began: in
   * milliseconds since the request began, or -1 if that did not happen.
   */
  readonly passedMs: number
  readonly sentMs: number
  readonly answeredMs: number
  /** 0 when there was no answer. */
  readonly status: number
  readonly isFromUpstream: boolean
  /** The error that the edge answered with. */
  readonly fault: VisitorErrorCode | undefined
  /** Whether either end left before the exchange was complete. */
  readonly isCut: boolean
  /** Bytes of bodies, or of an upgraded connection. */
  readonly bytesIn: number
  readonly bytesOut: number
  /** What modules decided, by the names of. */
  readonly found: ReadonlyMap<string, string> | undefined
  /** What was kept of heads and bodies. */
  readonly kept: KeptParts | undefined
  /** Set when it repeats an exchange. */
  readonly replay: Pick<Replay, 'of' | 'noted'> | undefined
}

/** Heads and bodies of one exchange that a capture keeps. */
export interface KeptParts {
  readonly captureId: string
  readonly hasBodies: boolean
  /** The number of the last part; each leads to the one before. */
  readonly lastPart: number
}
