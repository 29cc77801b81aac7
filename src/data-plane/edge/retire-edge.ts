/** Retires a removed edge: it gets no new visitors, and those present get the drain time (D42). */

/** Who holds connections of visitors. */
interface HoldsVisitors {
  /** Call it when the edge is gone. The result ends the connections that it had until now. */
  retire(edgeId: string): () => void
}

interface Retiring {
  /** Connections of TCP and TLS edges. */
  readonly streams: HoldsVisitors
  /** Connections that carry requests. */
  readonly http: HoldsVisitors
  /** Whether an edge with this id is served, perhaps again. */
  readonly isServed: (edgeId: string) => boolean
  readonly drainMs: number
}

/** Ends, after the drain time, those of the edge's present connections that are still open. */
export function retireEdge(edgeId: string, { streams, http, isServed, drainMs }: Retiring): void {
  const [endStreams, endHttp] = [streams.retire(edgeId), http.retire(edgeId)]
  setTimeout(() => {
    endStreams()
    // An endpoint whose agent reconnected is back, and serves these connections' next requests.
    if (!isServed(edgeId)) endHttp()
  }, drainMs).unref()
}
