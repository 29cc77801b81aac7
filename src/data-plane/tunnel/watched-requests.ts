/** Lets clients watch the requests to an endpoint; without watchers this costs one comparison a request. */
import type { ServedRequest } from '../../model/served-request.ts'

type Watcher = (request: ServedRequest) => void

export class WatchedRequests {
  /** By endpoint id: an endpoint has one tunnel, and so at most one watcher. */
  readonly #watchers = new Map<string, Watcher>()
  /**
   * Watchers at other data planes of the node, since a visitor may come to any plane. There may be two for a moment when an agent
   * moves between planes.
   */
  readonly #forPeers = new Map<string, Set<Watcher>>()
  #isNobodyWatching = true
  #heard: (endpointId: string, isWatched: boolean) => void = () => {}

  /** Gives a function that stops watching. */
  watch(endpointId: string, watcher: Watcher): () => void {
    this.#watchers.set(endpointId, watcher)
    this.#isNobodyWatching = false
    this.#heard(endpointId, true)
    return () => {
      // Another watcher may have replaced this one.
      if (this.#watchers.get(endpointId) !== watcher) return
      this.#watchers.delete(endpointId)
      this.#updateFlag()
      this.#heard(endpointId, false)
    }
  }

  /** The same for a watcher at another plane. */
  watchForPeer(endpointId: string, watcher: Watcher): () => void {
    const watchers = this.#forPeers.get(endpointId) ?? new Set()
    this.#forPeers.set(endpointId, watchers.add(watcher))
    this.#isNobodyWatching = false
    return () => {
      if (watchers.delete(watcher) && watchers.size === 0) this.#forPeers.delete(endpointId)
      this.#updateFlag()
    }
  }

  /** Endpoints that are watched at this plane. */
  watched(): string[] {
    return [...this.#watchers.keys()]
  }

  /** Calls `heard` when an endpoint is watched at this plane from now on, or no longer; one listener only. */
  whenWatched(heard: (endpointId: string, isWatched: boolean) => void): void {
    this.#heard = heard
  }

  /** Called for every request served at this plane; `edge` may be the id of an endpoint. */
  saw(request: ServedRequest & { readonly edge: string | undefined }): void {
    if (this.#isNobodyWatching || request.edge === undefined) return
    this.#watchers.get(request.edge)?.(request)
    const forPeers = this.#forPeers.get(request.edge)
    if (forPeers) for (const watcher of forPeers) watcher(request)
  }

  /** A request that another plane served. */
  sawAtPeer(endpointId: string, request: ServedRequest): void {
    this.#watchers.get(endpointId)?.(request)
  }

  #updateFlag(): void {
    this.#isNobodyWatching = this.#watchers.size + this.#forPeers.size === 0
  }
}
