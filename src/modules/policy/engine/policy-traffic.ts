/** The ports through which rules see traffic, and their verdicts. The requests and responses of an edge fit them. */
import type { X509Certificate } from 'node:crypto'
import type { HeaderList } from '../../../lib/http/header-list.ts'
import type { Peer } from '../../../lib/net/peer.ts'
import type { VisitorErrorCode } from '../../../model/visitor-errors.ts'

/** The result of a TLS handshake with this edge. */
export interface PolicyTls {
  readonly serverName: string
  readonly version: string
  readonly cipher: string
  readonly alpn: string
  readonly isResumed: boolean
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

export interface PolicyRequest {
  readonly peer: Peer
  readonly tls: PolicyTls | undefined
  readonly edgeId: string
  readonly routeId: string
  readonly startedAt: number
  readonly scheme: 'http' | 'https'
  readonly version: '1.1' | '2'
  readonly method: string
  readonly host: string
  readonly authority: string
  readonly target: string
  readonly path: string
  readonly query: string
  readonly headers: HeaderList
  readonly found: Map<string, string>
  replacedHost: string | undefined
  replacedTarget: string | undefined
  readBody(maxBytes: number): Promise<Buffer | 'too_large' | 'no_memory'>
}

export interface PolicyResponse {
  status: number
  readonly headers: HeaderList
  readonly isFromUpstream: boolean
  readonly bodyLength?: number | undefined
}

/** How an exchange ended. */
export interface PolicySummary {
  readonly status: number
  readonly isFromUpstream: boolean
  readonly fault: VisitorErrorCode | undefined
}

type Pairs = readonly (readonly [string, string])[]

/** What a rule decided about traffic: to refuse it, or to answer it. */
export type Verdict =
  | { readonly refuse: VisitorErrorCode; readonly headers?: Pairs }
  | { readonly respond: { readonly status: number; readonly headers: Pairs; readonly body: Buffer | string } }
  | { readonly close: true }
