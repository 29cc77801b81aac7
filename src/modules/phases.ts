/** What a module does to traffic: the phases of a connection and of a request, and what each may answer. */
import type { Transform } from 'node:stream'
import type { ByteStream } from '../lib/bytes/byte-stream.ts'
import type { HeaderList } from '../lib/http/header-list.ts'
import type { Peer } from '../lib/net/peer.ts'
import type { VisitorErrorCode } from '../model/visitor-errors.ts'
import type {
  PolicyConnection,
  PolicyRequest,
  PolicyResponse,
  PolicySummary,
  PolicyTls,
  Verdict,
} from './policy/engine/policy-traffic.ts'

export type { Peer } from '../lib/net/peer.ts'

/** What was agreed in a TLS handshake that ended at this edge. */
export type TlsFacts = PolicyTls

/** One request, parsed once: routing, modules and the log read the same values. */
export interface RequestContext extends PolicyRequest {
  /** Random, and different for each request. */
  readonly requestId: string
  /** Set when the request is for a reserved path and a module of this route must answer it. */
  readonly reservedPath: string | undefined
  readonly isUpgrade: boolean
  /** State of modules for this request; each reads and writes its own through a `Slot`. */
  readonly slots: Map<Slot<unknown>, unknown>
}

/** A typed key under which a module keeps state of a request between phases; made when it is compiled. */
export class Slot<Value> {
  of({ slots }: Pick<RequestContext, 'slots'>): Value | undefined {
    // Only `set` of this slot writes there.
    return slots.get(this) as Value | undefined
  }

  set({ slots }: Pick<RequestContext, 'slots'>, value: Value): void {
    slots.set(this, value)
  }
}

/** The request as it goes upstream. */
interface Outgoing {
  readonly headers: HeaderList
}

/** The response as it came from upstream, or as a module or the edge itself made it. */
export interface Incoming extends PolicyResponse {
  /** Whether a body follows. */
  readonly hasBody: boolean
  /** Sends the body through `encode`; the edge takes care of framing. */
  encodeBody(encode: Transform): void
}

/** A path that a module answers on all hosts of its edge, whichever route matches it. */
export interface Reserved {
  /** `{route}` stands for the id of the module's route. */
  readonly path: string
  /** Whether the module answers a request for it, since several modules of an edge may reserve one path. Must not throw. */
  readonly pathUse: (request: ReservedRequest) => PathUse
}

/** A path of `Reserved` with the id of a route filled in. */
export function pathOfRoute(path: string, routeId: string): string {
  return path.replace('{route}', routeId)
}

/** `own`: the request is for this module. `spare`: the module answers if no other claims it; the first such one does. */
export type PathUse = 'own' | 'spare' | 'none'

/** What is known of a request for a reserved path before it has a route; `routeId` is the module's own. */
export interface ReservedRequest extends Pick<PolicyRequest, 'host' | 'query' | 'headers' | 'routeId'> {
  /** Whether `path` is one of the module's own route. */
  readonly serves: (path: string) => boolean
}

export type Summary = PolicySummary

/** Which edge a connection came to, and the name in its ClientHello. */
export type ReachedEdge = Pick<PolicyConnection, 'edgeId' | 'serverName'>

/** The verdict on a connection, before anything was read or after the handshake. Undefined lets it pass. */
export type ConnectionVerdict = { readonly refuse: VisitorErrorCode } | undefined

/** The verdict on a request. Undefined lets it pass. */
export type RequestVerdict = Verdict | undefined

/** The verdict on a response, which it replaces. Undefined keeps the response with the changes that the phase made. */
export type ResponseVerdict = Verdict | undefined

/** Not let through: the visitor gets an error page. */
export type Refuse = Extract<Verdict, { refuse: unknown }>

/** Answered here instead of by the upstream. */
export type Respond = Extract<Verdict, { respond: unknown }>

/** The `Retry-After` when there is no memory for a body, in seconds: bodies are gone within a few. */
const BODY_RETRY_SECONDS = 5

/** What a module answers when there is no memory for a body. */
export const bodyMemoryRefusal: Refuse = {
  refuse: 'BODY_MEMORY_FULL',
  headers: [['Retry-After', String(BODY_RETRY_SECONDS)]],
}

/** What a module requires of TLS that ends at this edge. */
export interface TlsDemands {
  readonly minVersion?: 'TLSv1' | 'TLSv1.1' | 'TLSv1.2' | 'TLSv1.3'
  /** Certificates, in PEM, of the authorities that must have issued client certificates. */
  readonly clientAuthorities?: readonly string[]
  /** The certificate for every name, instead of the one that the server would choose. */
  readonly certificate?: { readonly cert: string; readonly key: string }
}

/**
 * The phases, in the order in which they run. When one throws, the visitor gets a 500 or a closed connection, and the error
 * is logged. A module keeps its state in the closure of these functions: it lives until the module's settings change.
 */
export interface Phases {
  /** Whether TLS ends here and how; on HTTPS edges it always does. */
  readonly tls?: TlsDemands
  /** On TCP edges, before a byte is read; on TLS edges, once the name in the ClientHello has determined the edge. */
  readonly accept?: (peer: Peer, reached: ReachedEdge) => ConnectionVerdict
  /** After a TLS handshake that ended here; runs for resumed sessions too. */
  readonly handshake?: (tls: TlsFacts, peer: Peer, reached: ReachedEdge) => ConnectionVerdict
  /**
   * Whether a phase decides by the path, through `path` or `target`. A path that servers could read in several ways is
   * then refused before any phase sees it (D63).
   */
  readonly readsPath?: boolean
  /**
   * The module's own paths, which are matched before routes. A request for such a path runs through the modules of this
   * route in their order, and this module's `request` must answer it: `ctx.reservedPath` is set then.
   */
  readonly reserves?: readonly Reserved[]
  /**
   * Names of cookies that no upstream of the edge may see, whatever the route, since browsers send them to the whole host.
   * A trailing `*` stands for any ending.
   */
  readonly hidesCookies?: readonly string[]
  readonly request?: (ctx: RequestContext) => RequestVerdict | Promise<RequestVerdict>
  readonly upstream?: (outgoing: Outgoing, ctx: RequestContext) => void
  /** A verdict replaces the response, and the modules further up the list see that one instead. */
  readonly response?: (incoming: Incoming, ctx: RequestContext) => ResponseVerdict | Promise<ResponseVerdict>
  /** Names of headers that `upstream` removes, in lower case; trailers of these names are removed too. */
  readonly removesFromRequest?: readonly string[]
  /** The same for `response`; they are removed from interim responses and trailers too. */
  readonly removesFromResponse?: readonly string[]
  /** After the last byte, or when it is certain that none follows. */
  readonly done?: (summary: Summary, ctx: RequestContext) => void
  /** Joins an upgraded visitor with a connection to the backend, instead of HTTP to the backend. */
  readonly bridge?: (visitor: ByteStream, backend: ByteStream) => void
  /** Called when the module was replaced or removed. Phases may still run for requests that are under way. */
  readonly release?: () => void
}
