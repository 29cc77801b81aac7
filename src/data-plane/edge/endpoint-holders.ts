/**
 * Endpoints of agents, each served as long as it has a holder: its tunnel here or at another plane, another node, or in
 * a pool any of several tunnels.
 */
import { type EdgeConfig, isPool } from '../../model/edge-config.ts'
import type { CompiledEdge } from './compile-edge.ts'
import type { EdgeTable } from './edge-table.ts'

export class EndpointHolders {
  readonly #edges: Pick<EdgeTable, 'has' | 'apply' | 'applyCompiled' | 'compileAhead' | 'remove'>
  /** The holders of an edge, by its id. */
  readonly #holders = new Map<string, Set<string>>()
  #onRemoved: () => void = () => {}

  constructor(edges: Pick<EdgeTable, 'has' | 'apply' | 'applyCompiled' | 'compileAhead' | 'remove'>) {
    this.#edges = edges
  }

  /** `then` runs when an endpoint is no longer served. */
  whenRemoved(then: () => void): void {
    this.#onRemoved = then
  }

  /** Undefined for a pool that is served already: it is not compiled again for each member. */
  async compile(config: EdgeConfig): Promise<CompiledEdge | undefined> {
    return this.#isServed(config) ? undefined : this.#edges.compileAhead(config)
  }

  /** Serves what `compile` returned; resolves with the error when a port cannot be opened. */
  async serve(config: EdgeConfig, compiled: CompiledEdge | undefined, holder: string): Promise<Error | undefined> {
    const isServed = this.#isServed(config)
    this.#hold(config.id, holder)
    if (isServed) {
      compiled?.release()
      return undefined
    }
    return compiled ? this.#edges.applyCompiled(config, compiled) : this.#edges.apply(config)
  }

  /** Serves an endpoint, and leaves compiling to the first visitor. */
  async serveIdle(config: EdgeConfig, holder: string): Promise<Error | undefined> {
    const isServed = this.#isServed(config)
    this.#hold(config.id, holder)
    return isServed ? undefined : this.#edges.apply(config, { isIdle: true })
  }

  /** Removes a holder; after the last one, the endpoint is no longer served. */
  letGo(id: string, holder: string): void {
    const holders = this.#holders.get(id)
    if (!holders?.delete(holder) || holders.size > 0) return
    this.#holders.delete(id)
    this.#edges.remove(id)
    this.#onRemoved()
  }

  /** The id of a pool identifies all of its configuration, so a pool that is served never changes. */
  #isServed(config: EdgeConfig): boolean {
    return isPool(config) && this.#holders.has(config.id) && this.#edges.has(config.id)
  }

  #hold(id: string, holder: string): void {
    this.#holders.set(id, (this.#holders.get(id) ?? new Set()).add(holder))
  }
}
