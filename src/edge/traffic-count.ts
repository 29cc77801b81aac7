/** Counts traffic by edge in plain numbers, so that a request costs a few additions; whoever reads them sums up. */

/** Edges that are told apart; traffic of all others is counted together. */
const MAX_EDGES = 1000

/** What stands for endpoints of agents, which come and go, and for what no edge serves; and for edges beyond the bound. */
const ENDPOINTS = 'endpoints'
const OTHERS = 'others'

/** Everything counted of one edge since the start. */
export interface EdgeCount {
  readonly edge: string
  connections: number
  /** Open at this moment. */
  open: number
  bytesIn: number
  bytesOut: number
  /** Requests by the first digit of their status; 0 for those without an answer. */
  readonly requests: number[]
  /** Connections and requests that were not let through. */
  refused: number
}

export interface TrafficCountOptions {
  /** What is not served any more gets no count of its own: requests and connections may end after their edge is gone. */
  readonly isServed?: (edgeId: string) => boolean
}

export class TrafficCount {
  readonly #isServed: (edgeId: string) => boolean
  readonly #edges = new Map<string, EdgeCount>()
  /** Those of edges that are gone, while somebody is still connected. */
  readonly #retired = new Set<EdgeCount>()

  constructor({ isServed = () => true }: TrafficCountOptions = {}) {
    this.#isServed = isServed
  }

  /** The count of an edge; keep it for the time of a connection. */
  of(edgeId: string): EdgeCount {
    const label = edgeId === '' || edgeId.startsWith('ep_') ? ENDPOINTS : edgeId
    const known = this.#edges.get(label)
    if (known) return known
    const isOwn = label !== ENDPOINTS && label !== OTHERS
    if (isOwn && (this.#edges.size >= MAX_EDGES || !this.#isServed(edgeId))) return this.of(OTHERS)
    const count: EdgeCount = {
      edge: label,
      connections: 0,
      open: 0,
      bytesIn: 0,
      bytesOut: 0,
      requests: [0, 0, 0, 0, 0, 0],
      refused: 0,
    }
    this.#edges.set(label, count)
    return count
  }

  /** A connection that was counted as open is over. */
  closed(count: EdgeCount): void {
    count.open--
    if (count.open === 0 && this.#retired.delete(count)) this.#edges.delete(count.edge)
  }

  /** An edge is gone; what it had is forgotten when the last of its connections is over. */
  forget(edgeId: string): void {
    const count = this.#edges.get(edgeId)
    if (!count) return
    if (count.open === 0) this.#edges.delete(edgeId)
    else this.#retired.add(count)
  }

  [Symbol.iterator](): Iterator<EdgeCount> {
    return this.#edges.values()
  }
}
