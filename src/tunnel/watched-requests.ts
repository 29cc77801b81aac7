/** Who watches the requests to an endpoint: a look at one number for all others. */
import type { ServedRequest } from '../model/served-request.ts'

export type Watcher = (request: ServedRequest) => void

export class WatchedRequests {
  /** By the id of the endpoint, which has one tunnel and so at most one who watches. */
  readonly #watchers = new Map<string, Watcher>()

  /** Gives back how to stop. */
  watch(endpointId: string, watcher: Watcher): () => void {
    this.#watchers.set(endpointId, watcher)
    return () => {
      // Somebody else may have the endpoint by now.
      if (this.#watchers.get(endpointId) === watcher) this.#watchers.delete(endpointId)
    }
  }

  /** Called for every request that was served; `edge` is also the id of an endpoint. */
  saw(request: ServedRequest & { readonly edge: string | undefined }): void {
    if (this.#watchers.size === 0 || request.edge === undefined) return
    this.#watchers.get(request.edge)?.(request)
  }
}
