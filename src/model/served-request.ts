/** One request of a visitor, as the user of the agent sees it in a live list. */
export interface ServedRequest {
  readonly method: string
  /** As the visitor sent it, without the query; it may contain control characters, so escape it before printing. */
  readonly path: string
  /** 0 when there was no answer. */
  readonly status: number
  readonly durationMs: number
}
