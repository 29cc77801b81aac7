/** Keeps the data plane up to date with the stored edges: all of them at first, then those that a change touches. */
import type { Logger } from '../lib/log/log.ts'
import type { Sealer } from '../lib/secrets/seal.ts'
import { ownTurn } from '../lib/threads/others-turn.ts'
import type { EdgeConfig } from '../model/edge-config.ts'
import { referredByModules } from '../modules/index.ts'
import { NESTING_KINDS } from '../resources/backend-lists.ts'
import type { Change } from '../store/feed.ts'
import type { Reader, StoredResource } from '../store/reader.ts'
import type { Store } from '../store/store.ts'
import { edgeResources, readEdgeConfigs } from './edge-configs.ts'
import type { EdgeEndpoints } from './edge-endpoints.ts'
import type { Followed } from './follower.ts'

/** Who serves edges. */
export interface EdgeSink {
  /**
   * Serves it from now on, in place of what it was; never throws, so that one broken edge holds nobody back. `isIdle`
   * leaves the work to the first visitor.
   */
  apply(config: EdgeConfig, options?: { isIdle: boolean }): Promise<unknown>
  remove(id: string): void
  /** The stored edges that are served now. */
  readonly storedIds: Iterable<string>
}

/** How many edges are read at once; each may have many routes. */
const AT_A_TIME = 100

/** More levels than backends can be nested (D28), so that none is missed. */
const WAY_UP = { through: NESTING_KINDS, levels: 16 }

const edgeKinds = [...edgeResources.keys()]

/** What edges and their routes refer to by their modules; the change of one touches all that refer to it. */
const referredKinds = new Set([...referredByModules(), ...NESTING_KINDS])

export class LiveEdges implements Followed {
  readonly #store: Store
  readonly #sealer: Sealer
  readonly #sink: EdgeSink
  readonly #endpoints: EdgeEndpoints
  readonly #log: Logger

  constructor(options: { store: Store; sealer: Sealer; sink: EdgeSink; endpoints: EdgeEndpoints; log: Logger }) {
    this.#store = options.store
    this.#sealer = options.sealer
    this.#sink = options.sink
    this.#endpoints = options.endpoints
    this.#log = options.log
  }

  async load(): Promise<void> {
    const gone = new Set(this.#sink.storedIds)
    for (const kind of edgeKinds) {
      let beforeId: string | undefined
      do {
        const configs = await this.#store.read(async (reader) => {
          const some = await reader.page({ kind, limit: AT_A_TIME, ...(beforeId !== undefined && { beforeId }) })
          beforeId = some.at(-1)?.id
          for (const edge of some) this.#list(edge)
          return readEdgeConfigs(reader, this.#sealer, some)
        })
        for (const config of configs) {
          gone.delete(config.id)
          await this.#sink.apply(config, { isIdle: true })
        }
        // SQLite answers at once: without a pause nobody would be served until everything is read.
        await ownTurn()
      } while (beforeId !== undefined)
    }
    for (const id of gone) this.#remove(id)
  }

  async apply(changes: readonly Change[]): Promise<void> {
    const ids = await this.#store.read((reader) => touched(reader, changes))
    for (let from = 0; from < ids.length; from += AT_A_TIME) {
      const some = ids.slice(from, from + AT_A_TIME)
      const configs = await this.#store.read(async (reader) => {
        const edges = await reader.resources(some)
        for (const edge of edges) this.#list(edge)
        return readEdgeConfigs(reader, this.#sealer, edges)
      })
      const found = new Set(configs.map(({ id }) => id))
      // Removed edges go first, so that their names are free for the others.
      for (const id of some) if (!found.has(id)) this.#remove(id)
      for (const config of configs) await this.#sink.apply(config)
      this.#log.debug({ edges: some }, 'edges changed')
      if (from + AT_A_TIME < ids.length) await ownTurn()
    }
  }

  #list(edge: StoredResource): void {
    try {
      this.#endpoints.set(edge)
    } catch (error) {
      this.#endpoints.delete(edge.id)
      this.#log.warn({ err: error, edge: edge.id }, 'endpoints of an edge cannot be listed')
    }
  }

  #remove(id: string): void {
    this.#endpoints.delete(id)
    this.#sink.remove(id)
  }
}

/** The edges that `changes` touch, directly or through what they refer to. */
async function touched(reader: Reader, changes: readonly Change[]): Promise<string[]> {
  const ids = new Set<string>()
  for (const { kind, id } of changes) {
    if (edgeResources.has(kind)) ids.add(id)
    if (!referredKinds.has(kind)) continue
    const referrers = await reader.referrersThrough(id, WAY_UP, [...edgeKinds, 'https_edge_route'])
    for (const referrer of referrers) {
      ids.add(referrer.kind === 'https_edge_route' ? (referrer.parentId ?? '') : referrer.id)
    }
  }
  return [...ids]
}
