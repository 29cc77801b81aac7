/** The ports through which rules see traffic, and their verdicts. */
import type { X509Certificate } from 'node:crypto'
import type { HeaderList } from '../../../lib/http/header-list.ts'
import type { Peer } from '../../../lib/net/peer.ts'
import type { VisitorErrorCode } from '../../../model/visitor-errors.ts'

/** What was agreed in a TLS handshake that ended at this edge. */
export interface PolicyTls {
  /** The name that the visitor asked for. */
  readonly serverName: string
  readonly version: string
  readonly cipher: string
  readonly alpn: string
  readonly isResumed: boolean
  /** Read it with our own readers only: Node's legacy form of a certificate can crash the process. */
  readonly clientCertificate: X509Certificate | undefined
}

/** A connection, from which no request is read. */
export interface PolicyConnection {
  readonly peer: Peer
  readonly edgeId: string
  /** The name that the visitor requested; undefined on TCP edges. */
  readonly serverName: string | undefined
  /** Undefined where TLS is not terminated here. */
  readonly tls: PolicyTls | undefined
}

/** Pays for work, in steps; throws when it cannot. */
export interface Meter {
  charge(steps: number): void
}

/** What rules read of a request. The requests of an edge fit it; `RequestContext` has more. */
export interface PolicyRequest {
  readonly peer: Peer
  /** Undefined on the plain listener. */
  readonly tls: PolicyTls | undefined
  readonly edgeId: string
  readonly routeId: string
  readonly startedAt: number
  readonly scheme: 'http' | 'https'
  readonly version: '1.1' | '2'
  readonly method: string
  /** Lower case, without port. */
  readonly host: string
  /** `Host` as it was sent. */
  readonly authority: string
  /** Path and query as they were sent: what goes upstream. */
  readonly target: string
  /**
   * The path in the one form that routes are compared with. Only for modules whose phases set `readsPath`: it throws when
   * servers could read the path in several ways.
   */
  readonly path: string
  /** Without the `?`; empty when there is none. */
  readonly query: string
  /** As the visitor sent them, without hop-by-hop headers and without names that only the edge sets. */
  readonly headers: HeaderList
  /** Bytes of the body as announced; `unknown` until it ends, or `none`. */
  readonly bodyLength: number | 'unknown' | 'none'
  /** What modules decided and found out, for templates and the log, by the names of such as `ip_policy.decision`. */
  readonly found: Map<string, string>
  /** The `Host` that goes upstream instead of the visitor's, when a module replaced it. */
  replacedHost: string | undefined
  /** The path and query that go upstream instead of `target`, when a module replaced them. */
  replacedTarget: string | undefined
  /**
   * Reads the whole body and keeps it for the upstream, in memory that counts towards the limit of the node. `too_large`:
   * it is longer than `maxBytes`. `no_memory`: the limit is reached; refuse with `bodyMemoryRefusal`.
   */
  readBody(maxBytes: number): Promise<Buffer | 'too_large' | 'no_memory'>
}

export interface PolicyResponse {
  status: number
  readonly headers: HeaderList
  /** Whether an upstream sent it. */
  readonly isFromUpstream: boolean
  /** Bytes of the body, when that is known beforehand. */
  readonly bodyLength?: number | undefined
}

/** How an exchange ended. */
export interface PolicySummary {
  /** 0 when there was no response. */
  readonly status: number
  /** Whether the status is the upstream's. */
  readonly isFromUpstream: boolean
  /** Why the upstream gave no response, if the request was sent to it. */
  readonly fault: VisitorErrorCode | undefined
}

type Pairs = readonly (readonly [string, string])[]

/**
 * What a rule or a module decided about traffic: to refuse it, where headers such as `WWW-Authenticate` may belong to the
 * refusal, to answer it, or to end the connection without an answer.
 */
export type Verdict =
  | { readonly refuse: VisitorErrorCode; readonly headers?: Pairs }
  | { readonly respond: { readonly status: number; readonly headers: Pairs; readonly body: Buffer | string } }
  | { readonly close: true }
