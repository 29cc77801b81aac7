/** Counts traffic by edge and endpoint in plain numbers: a request costs a few additions, and readers sum them up. */
import { LatencyCount } from './latency-count.ts'

/** Edges that are counted separately; traffic of all others is counted together. */
const MAX_EDGES = 1000

/** The same for endpoints of agents, which come and go by the thousand. */
const MAX_ENDPOINTS = 500

/** Labels for all endpoints of agents together with traffic for no edge, and for those beyond a bound. */
const ENDPOINTS = 'endpoints'
const OTHERS = 'others'

/** All that was counted for one edge or endpoint since the start. */
export interface EdgeCount {
  readonly edge: string
  /** The address of an endpoint; `''` for an edge, which may have many. */
  readonly address: string
  connections: number
  /** Connections that are open now. */
  open: number
  bytesIn: number
  bytesOut: number
  /** Requests by the first digit of their status; 0 for those without an answer. */
  readonly requests: number[]
  /** The total time of requests with an answer, in milliseconds, without upgraded connections. */
  requestMs: number
  /** Connections and requests that were not let through. */
  refused: number
}

interface TrafficCountOptions {
  /** An edge that is no longer served gets no new count: requests may end after their edge is gone. */
  readonly isServed?: (edgeId: string) => boolean
  readonly addressOf?: (endpointId: string) => string
}

export class TrafficCount {
  /** How long requests took, for all edges together. */
  readonly latency = new LatencyCount()
  readonly #isServed: (edgeId: string) => boolean
  readonly #addressOf: (endpointId: string) => string
  readonly #edges = new Map<string, EdgeCount>()
  readonly #endpoints = new Map<string, EdgeCount>()
  /** Endpoints that have no count of their own, or have it no longer. */
  readonly #otherEndpoints = newCount(OTHERS)
  /** Counts of edges that are gone but still have connections. */
  readonly #retired = new Set<EdgeCount>()

  constructor({ isServed = () => true, addressOf = () => '' }: TrafficCountOptions = {}) {
    this.#isServed = isServed
    this.#addressOf = addressOf
  }

  /** The count of an edge or endpoint; keep it for the duration of a connection. */
  of(edgeId: string): EdgeCount {
    if (edgeId === '' || edgeId.startsWith('ep_')) return this.#endpoints.get(edgeId) ?? this.#newEndpoint(edgeId)
    return this.#edges.get(edgeId) ?? this.#newEdge(edgeId)
  }

  /** A connection that was counted as open has closed. */
  closed(count: EdgeCount): void {
    count.open--
    if (count.open === 0 && this.#retired.delete(count)) this.#drop(count)
  }

  /** An edge was removed; its count is dropped with its last connection. */
  forget(edgeId: string): void {
    const count = this.#edges.get(edgeId) ?? this.#endpoints.get(edgeId)
    if (!count) return
    if (count.open === 0) this.#drop(count)
    else this.#retired.add(count)
  }

  /** Edges, and all endpoints as one. */
  *[Symbol.iterator](): Generator<EdgeCount> {
    yield* this.#edges.values()
    const all = newCount(ENDPOINTS)
    for (const each of this.endpoints()) add(all, each)
    if (all.connections > 0 || all.refused > 0 || all.requests.some((count) => count > 0)) yield all
  }

  /** Endpoints one by one, and those that have no count of their own together. */
  *endpoints(): Generator<EdgeCount> {
    yield* this.#endpoints.values()
    yield this.#otherEndpoints
  }

  #newEdge(edgeId: string): EdgeCount {
    const isOwn = edgeId === OTHERS || (this.#edges.size < MAX_EDGES && this.#isServed(edgeId))
    if (!isOwn) return this.of(OTHERS)
    const count = newCount(edgeId)
    this.#edges.set(edgeId, count)
    return count
  }

  #newEndpoint(id: string): EdgeCount {
    if (id === '' || this.#endpoints.size >= MAX_ENDPOINTS || !this.#isServed(id)) return this.#otherEndpoints
    const count = newCount(id, this.#addressOf(id))
    this.#endpoints.set(id, count)
    return count
  }

  /** An endpoint's numbers stay in the sum of all, which must only grow. */
  #drop(count: EdgeCount): void {
    this.#edges.delete(count.edge)
    if (this.#endpoints.delete(count.edge)) add(this.#otherEndpoints, count)
  }
}

function newCount(edge: string, address = ''): EdgeCount {
  return {
    edge,
    address,
    connections: 0,
    open: 0,
    bytesIn: 0,
    bytesOut: 0,
    requests: [0, 0, 0, 0, 0, 0],
    requestMs: 0,
    refused: 0,
  }
}

const summed = ['connections', 'open', 'bytesIn', 'bytesOut', 'requestMs', 'refused'] as const

function add(sum: EdgeCount, count: EdgeCount): void {
  for (const field of summed) sum[field] += count[field]
  for (const [digit, requests] of count.requests.entries()) sum.requests[digit] = (sum.requests[digit] ?? 0) + requests
}
