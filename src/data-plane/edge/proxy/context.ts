/** One request as routing, modules and the log see it: parsed once, the same value for all of them. */
import type { HeaderList } from '../../../lib/http/header-list.ts'
import type { Peer, RequestContext, Slot, TlsFacts } from '../../../modules/phases.ts'
import type { BodyLength } from '../../requests/http-exchange.ts'
import type { Search } from './find-route.ts'
import { asSent, hasOtherReadings, splitTarget } from './path-readings.ts'
import type { UnreadBody } from './request-body.ts'

/** Where a request goes. */
type Destination = Pick<RequestContext, 'edgeId' | 'routeId' | 'host' | 'query' | 'reservedPath'>

/** Costly fields are computed on first use; most requests need few of them. */
export class Context implements RequestContext {
  readonly peer: Peer
  readonly tls: TlsFacts | undefined
  readonly edgeId: string
  readonly routeId: string
  readonly startedAt: number
  readonly scheme: 'http' | 'https'
  readonly version: '1.1' | '2'
  readonly method: string
  readonly host: string
  readonly authority: string
  readonly target: string
  readonly query: string
  readonly reservedPath: string | undefined
  readonly headers: HeaderList
  readonly isUpgrade: boolean
  replacedHost: string | undefined
  replacedTarget: string | undefined
  readonly #arrival: Search
  #requestId: string | undefined
  #found: Map<string, string> | undefined
  #slots: Map<Slot<unknown>, unknown> | undefined

  constructor(arrival: Search, { edgeId, routeId, host, query, reservedPath }: Destination) {
    const { head, connection, startedAt } = arrival
    this.peer = connection.peer
    this.tls = connection.tls
    this.edgeId = edgeId
    this.routeId = routeId
    this.startedAt = startedAt
    this.scheme = connection.tls === undefined ? 'http' : 'https'
    this.version = head.version
    this.method = head.method
    this.host = host
    this.authority = head.authority
    this.target = head.target
    this.query = query
    this.reservedPath = reservedPath
    this.headers = head.headers
    this.isUpgrade = head.upgrade !== undefined
    this.#arrival = arrival
  }

  /** Throws when the path has several readings: the module did not declare that it reads the path, and is broken. */
  get path(): string {
    const path = asSent(splitTarget(this.target).path)
    if (path === undefined || hasOtherReadings(path)) throw new Error('a module reads a path that has several readings')
    return path
  }

  get requestId(): string {
    this.#requestId ??= this.#arrival.tools.newRequestId()
    return this.#requestId
  }

  get bodyLength(): BodyLength {
    return this.#arrival.head.body
  }

  get slots(): Map<Slot<unknown>, unknown> {
    this.#slots ??= new Map()
    return this.#slots
  }

  get found(): Map<string, string> {
    this.#found ??= new Map()
    return this.#found
  }

  /** Whether a module found anything. */
  get hasFindings(): boolean {
    return this.#found !== undefined && this.#found.size > 0
  }

  readBody(maxBytes: number): Promise<Buffer | UnreadBody> {
    const { body, tools } = this.#arrival
    return body.readWhole(maxBytes, () => tools.bodyMemory.lease({ edgeId: this.edgeId, ip: this.peer.ip }))
  }
}
