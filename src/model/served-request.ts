/** What became of one request of a visitor, as much as the owner of a tunnel is shown while it happens. */
export interface ServedRequest {
  readonly method: string
  /** As it was sent, without the query; nothing in it is safe to show as it is. */
  readonly path: string
  /** 0 when there was no answer. */
  readonly status: number
  readonly durationMs: number
}
