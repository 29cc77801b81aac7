/** What becomes of the visitors of an edge that is removed: no new ones, and those who are there get the drain time (D42). */

/** Who holds connections of visitors. */
export interface HoldsVisitors {
  /** The edge is gone. Gives back how to end the connections that it had until now. */
  retire(edgeId: string): () => void
}

export interface Retiring {
  /** Connections of TCP and TLS edges. */
  readonly streams: HoldsVisitors
  /** Connections that carry requests. */
  readonly http: HoldsVisitors
  /** Whether an edge with this id is served, perhaps again. */
  readonly isServed: (edgeId: string) => boolean
  readonly drainMs: number
}

/** Ends, after the drain time, what is left of the connections that the edge has now. */
export function retireEdge(edgeId: string, { streams, http, isServed, drainMs }: Retiring): void {
  const [endStreams, endHttp] = [streams.retire(edgeId), http.retire(edgeId)]
  setTimeout(() => {
    endStreams()
    // An endpoint whose agent reconnected is back, and serves these connections' next requests.
    if (!isServed(edgeId)) endHttp()
  }, drainMs).unref()
}
