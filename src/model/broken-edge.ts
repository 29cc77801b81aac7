/** The most broken edges that are reported; a server with more has worse problems. */
export const MAX_BROKEN_LISTED = 100

/** A stored edge that cannot be served as it is set up, or a route of one: it refuses traffic. */
export interface BrokenEdge {
  readonly edgeId: string
  /** Undefined for the whole edge. */
  readonly routeId?: string | undefined
  readonly reason: string
}
