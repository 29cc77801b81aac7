/** The outcome of one request: one line of the access log. */

import type { Peer } from '../../lib/net/peer.ts'
import type { SeenExchange } from '../../model/exchange.ts'
import type { Replay } from './running-captures.ts'

export interface AccessRecord
  extends Pick<
    SeenExchange,
    | 'startedAt'
    | 'durationMs'
    | 'scheme'
    | 'version'
    | 'method'
    | 'host'
    | 'path'
    | 'ownerId'
    | 'target'
    | 'status'
    | 'fault'
    | 'isCut'
    | 'bytesIn'
    | 'bytesOut'
  > {
  readonly peer: Peer
  /** Undefined when the request was refused before it got an id; ids are drawn when first needed. */
  readonly request: { readonly requestId: string } | undefined
  /** Path and query as sent. */
  readonly sentTarget: string
  readonly edge: string | undefined
  readonly route: string | undefined
  readonly isReused: boolean
  /**
   * When all modules had let the request pass, when there was a connection to the service, and when the answer began. In
   * milliseconds since the request began; -1 for what did not happen.
   */
  readonly passedMs: number
  readonly sentMs: number
  readonly answeredMs: number
  readonly isFromUpstream: boolean
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
