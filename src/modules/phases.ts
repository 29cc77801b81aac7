/** What a module does to traffic: the phases of a connection and of a request, and what each may answer. */
import type { X509Certificate } from 'node:crypto'
import type { Transform } from 'node:stream'
import type { ByteStream } from '../lib/bytes/byte-stream.ts'
import type { HeaderList } from '../lib/http/header-list.ts'
import type { Peer } from '../lib/net/peer.ts'
import type { VisitorErrorCode } from '../model/visitor-errors.ts'

export type { Peer } from '../lib/net/peer.ts'

/** What a handshake that ended here agreed on. */
export interface TlsFacts {
  /** The name that the visitor asked for. */
  readonly serverName: string
  readonly version: string
  readonly cipher: string
  readonly alpn: string
  readonly isResumed: boolean
  /** Read with our own readers alone: Node's legacy form of a certificate can end the process. */
  readonly clientCertificate: X509Certificate | undefined
}

/** One request, parsed once: what routing, modules and the log read is the same value. */
export interface RequestContext {
  readonly peer: Peer
  /** Undefined on the plain listener. */
  readonly tls: TlsFacts | undefined
  readonly edgeId: string
  readonly routeId: string
  /** Random, for this request alone. */
  readonly requestId: string
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
   * The one reading of the path, which routes are compared with. For modules whose phases say `readsPath`: it throws when
   * the path has several readings.
   */
  readonly path: string
  /** Without the `?`; empty when there is none. */
  readonly query: string
  /** The reserved path that was asked for, when a module of this route is to answer. */
  readonly reservedPath: string | undefined
  /** As the visitor sent them, without hop-by-hop headers and without names that are ours. */
  readonly headers: HeaderList
  readonly isUpgrade: boolean
  /** What modules decided and found out, by the names of such as `ip_policy.decision`: for templates and the log. */
  readonly found: Map<string, string>
  /** What modules keep with this request; each reads and writes its own by a `Slot`. */
  readonly slots: Map<Slot<unknown>, unknown>
  /** The `Host` that goes upstream instead of the visitor's, when a module replaced it. */
  replacedHost: string | undefined
  /** The path and query that go upstream instead of `target`, when a module replaced them. */
  replacedTarget: string | undefined
  /**
   * Reads the whole body and keeps it for upstream, in memory from the budget of the node. `too_large`: it is longer than
   * `maxBytes`. `no_memory`: there is none for it now; refuse with `bodyMemoryRefusal`.
   */
  readBody(maxBytes: number): Promise<Buffer | 'too_large' | 'no_memory'>
}

/** What one module keeps with a request from phase to phase, in a type of its own: made once, beside the module. */
export class Slot<Value> {
  of({ slots }: Pick<RequestContext, 'slots'>): Value | undefined {
    // Only `set` of this slot put something there.
    return slots.get(this) as Value | undefined
  }

  set({ slots }: Pick<RequestContext, 'slots'>, value: Value): void {
    slots.set(this, value)
  }
}

/** The request as it goes upstream. */
export interface Outgoing {
  readonly headers: HeaderList
}

/** The response as it came from upstream, or as a module or the edge itself made it. */
export interface Incoming {
  status: number
  readonly headers: HeaderList
  /** Whether an upstream sent it. */
  readonly isFromUpstream: boolean
  /** Whether a body follows. */
  readonly hasBody: boolean
  /** Bytes of the body, when that is known beforehand. */
  readonly bodyLength?: number | undefined
  /** Sends the body through `encode`; the framing is the edge's business. */
  encodeBody(encode: Transform): void
}

/** A path that a module answers on all hosts of its edge, whichever route it would be of. */
export interface Reserved {
  /** `{route}` in it stands for the id of the module's route. */
  readonly path: string
  /** Whether a request for it is the module's; several of an edge may reserve the same. Must not throw. */
  readonly claims: (request: ReservedRequest) => Claim
}

/** A path as `Reserved` writes it, at one route. */
export function pathOfRoute(path: string, routeId: string): string {
  return path.replace('{route}', routeId)
}

/** `own`: it is for this module. `spare`: it answers when it is for no other; the first in the order of matching does. */
export type Claim = 'own' | 'spare' | 'none'

/** What is known of a request for a reserved path before it has a route. */
export interface ReservedRequest {
  readonly host: string
  readonly query: string
  readonly headers: HeaderList
  /** The module's own route. */
  readonly routeId: string
  /** Whether `path` is one of the module's own route. */
  readonly serves: (path: string) => boolean
}

/** How an exchange ended. */
export interface Summary {
  /** 0 when there was none. */
  readonly status: number
  /** Whether the status is the upstream's. */
  readonly isFromUpstream: boolean
  /** Why no response came from upstream, when it was asked for one. */
  readonly fault: VisitorErrorCode | undefined
}

/** Where a connection came in. */
export interface Door {
  readonly edgeId: string
  /** The name that its hello asks for; undefined on TCP edges. */
  readonly serverName: string | undefined
}

/** On a connection, before anything of it was read or after its handshake. Undefined lets it pass. */
export type ConnectionVerdict = { readonly refuse: VisitorErrorCode } | undefined

/** On a request. Undefined lets it pass. */
export type RequestVerdict = Refuse | Respond | Close | undefined

/** On an answer, which it takes the place of. Undefined leaves it as the phase left it. */
export type ResponseVerdict = Refuse | Respond | Close | undefined

/** Not let through: the visitor gets an error page. */
export interface Refuse {
  readonly refuse: VisitorErrorCode
  /** Headers that belong to the refusal, such as `WWW-Authenticate`. */
  readonly headers?: readonly (readonly [string, string])[]
}

/** How long a visitor should wait whose body found no memory, in seconds: bodies come and go within a few. */
const BODY_RETRY_SECONDS = 5

/** What a module answers when a body cannot be read for want of memory. */
export const bodyMemoryRefusal: Refuse = {
  refuse: 'BODY_MEMORY_FULL',
  headers: [['Retry-After', String(BODY_RETRY_SECONDS)]],
}

/** Answered here instead of by the upstream. */
export interface Respond {
  readonly respond: {
    readonly status: number
    readonly headers: readonly (readonly [string, string])[]
    readonly body: Buffer | string
  }
}

/** The connection ends, without an answer. */
export interface Close {
  readonly close: true
}

/** What a module asks of the TLS that ends at this edge. */
export interface TlsDemands {
  readonly minVersion?: 'TLSv1' | 'TLSv1.1' | 'TLSv1.2' | 'TLSv1.3'
  /** Certificates of the authorities that clients must have theirs from, in PEM. */
  readonly clientAuthorities?: readonly string[]
  /** Used for every name, in the place of the server's own choice. */
  readonly certificate?: { readonly cert: string; readonly key: string }
}

/**
 * The phases, in their order in time. A throw means broken: the visitor gets a 500 or a close, and the log a line.
 * A module that keeps state keeps it in these functions' closure: it lives until the module's settings change.
 */
export interface Phases {
  /** Whether TLS ends here and how; on HTTPS edges it always does. */
  readonly tls?: TlsDemands
  /** Before a byte is read, on TCP edges, and after the edge is known by its name, on TLS edges. */
  readonly accept?: (peer: Peer, door: Door) => ConnectionVerdict
  /** TLS ended here; runs for every connection, resumed ones too. */
  readonly handshake?: (tls: TlsFacts, peer: Peer, door: Door) => ConnectionVerdict
  /**
   * Whether a phase decides by the path, through `path` or `target`. A path that servers could read in several ways is
   * then refused before any phase sees it (D63).
   */
  readonly readsPath?: boolean
  /**
   * Paths of the module's own, asked before routes. A request for one runs through the modules of this route in their
   * order, and this module's `request` must answer it: `ctx.reservedPath` says so.
   */
  readonly reserves?: readonly Reserved[]
  /**
   * Names of cookies that no upstream of the edge gets, behind whichever route: browsers send them to all of a host. One
   * that ends with `*` stands for all that begin so.
   */
  readonly hidesCookies?: readonly string[]
  readonly request?: (ctx: RequestContext) => RequestVerdict | Promise<RequestVerdict>
  readonly upstream?: (outgoing: Outgoing, ctx: RequestContext) => void
  /** A verdict takes the place of the answer, and the modules further up the list see that one instead. */
  readonly response?: (incoming: Incoming, ctx: RequestContext) => ResponseVerdict | Promise<ResponseVerdict>
  /** Names of headers that `upstream` removes, in lower case: trailers of these names go no further either. */
  readonly removesFromRequest?: readonly string[]
  /** The same of `response`; interim answers and trailers lose them too. */
  readonly removesFromResponse?: readonly string[]
  /** After the last byte, or when it is certain that none follows. */
  readonly done?: (summary: Summary, ctx: RequestContext) => void
  /** Takes an upgraded visitor and a connection of the backend, in the place of HTTP to the backend. */
  readonly bridge?: (visitor: ByteStream, backend: ByteStream) => void
  /** Nothing uses it any more: its settings changed, or what it hung on is gone. Requests under way may still come by. */
  readonly release?: () => void
}
