/** What became of one request: a line of the access log. */
import type { VisitorErrorCode } from '../../model/visitor-errors.ts'
import type { Peer } from '../../modules/phases.ts'

export interface AccessRecord {
  readonly peer: Peer
  /** In milliseconds since 1970. */
  readonly startedAt: number
  /** In milliseconds. */
  readonly durationMs: number
  /** Undefined when it was refused before it had an id; one is drawn when it is first asked for. */
  readonly request: { readonly requestId: string } | undefined
  readonly scheme: 'http' | 'https'
  readonly version: '1.1' | '2'
  readonly method: string
  /** Lower case, without port; as it was sent when it is no host. */
  readonly host: string
  /** As it was sent, without the query: that is where secrets stand. */
  readonly path: string
  readonly edge: string | undefined
  readonly route: string | undefined
  /** The service that the request went to. */
  readonly target: string | undefined
  readonly isReused: boolean
  /** 0 when there was no answer. */
  readonly status: number
  readonly isFromUpstream: boolean
  /** Why the edge answered by itself. */
  readonly fault: VisitorErrorCode | undefined
  /** Whether an end went away before all was said. */
  readonly isCut: boolean
  /** Of bodies, or of an upgraded connection. */
  readonly bytesIn: number
  readonly bytesOut: number
  /** What modules decided, by the names of. */
  readonly found: ReadonlyMap<string, string> | undefined
}
