/** Lets somebody watch the requests to an endpoint; for all others this costs one comparison. */
import type { ServedRequest } from '../model/served-request.ts'

export type Watcher = (request: ServedRequest) => void

export class WatchedRequests {
  /** By endpoint id: an endpoint has one tunnel, and so at most one watcher. */
  readonly #watchers = new Map<string, Watcher>()

  /** Gives a function that stops watching. */
  watch(endpointId: string, watcher: Watcher): () => void {
    this.#watchers.set(endpointId, watcher)
    return () => {
      // Another watcher may have replaced this one.
      if (this.#watchers.get(endpointId) === watcher) this.#watchers.delete(endpointId)
    }
  }

  /** Called for every request served; `edge` may be the id of an endpoint. */
  saw(request: ServedRequest & { readonly edge: string | undefined }): void {
    if (this.#watchers.size === 0 || request.edge === undefined) return
    this.#watchers.get(request.edge)?.(request)
  }
}
