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

export class TrafficCount {
  readonly #edges = new Map<string, EdgeCount>()

  /** The count of an edge; keep it for the time of a connection. */
  of(edgeId: string): EdgeCount {
    const label = edgeId === '' || edgeId.startsWith('ep_') ? ENDPOINTS : edgeId
    const known = this.#edges.get(label)
    if (known) return known
    if (label !== ENDPOINTS && label !== OTHERS && this.#edges.size >= MAX_EDGES) return this.of(OTHERS)
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

  /** An edge is gone for good; what it had is forgotten. */
  forget(edgeId: string): void {
    const count = this.#edges.get(edgeId)
    if (count && count.open === 0) this.#edges.delete(edgeId)
  }

  [Symbol.iterator](): Iterator<EdgeCount> {
    return this.#edges.values()
  }
}
