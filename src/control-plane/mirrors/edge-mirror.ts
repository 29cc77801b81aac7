/** Keeps a data plane up to date with the stored edges: all of them at first, then those that a change affects. */
import type { Logger } from '../../lib/log/create-log.ts'
import type { Sealer } from '../../lib/secrets/seal.ts'
import { ownTurn } from '../../lib/threads/others-turn.ts'
import type { EdgeConfig } from '../../model/edge-config.ts'
import { referredByModules } from '../../modules/index.ts'
import { NESTING_KINDS } from '../resources/backend-lists.ts'
import type { Change } from '../store/feed.ts'
import type { Followed } from '../store/feed-follower.ts'
import type { Reader } from '../store/reader.ts'
import type { Store } from '../store/store.ts'
import { edgeResources, readEdgeConfigs } from './edge-configs.ts'

/** Takes the edges that are to be served. */
export interface EdgeSink {
  /**
   * Serves the applied edges from now on in place of their former versions, and the removed ones no longer. A broken edge does
   * not hold up the others. `isIdle` leaves compiling to the first visitor.
   */
  change(change: {
    readonly applied: readonly EdgeConfig[]
    readonly removed: readonly string[]
    readonly isIdle: boolean
  }): Promise<unknown>
  /** Ids of the stored edges that are served now. */
  storedIds(): Promise<readonly string[]>
}

/** How many edges are read at once; each may have many routes. */
const AT_A_TIME = 100

/** More levels than backends can be nested (D28), so that none is missed. */
const WAY_UP = { through: NESTING_KINDS, levels: 16 }

const edgeKinds = [...edgeResources.keys()]

/** Kinds that edges and routes refer to; a change of one affects all edges that refer to it. */
const referredKinds = new Set([...referredByModules(), ...NESTING_KINDS])

export class LiveEdges implements Followed {
  readonly #store: Store
  readonly #sealer: Sealer
  readonly #sink: EdgeSink
  readonly #log: Logger

  constructor(options: { store: Store; sealer: Sealer; sink: EdgeSink; log: Logger }) {
    this.#store = options.store
    this.#sealer = options.sealer
    this.#sink = options.sink
    this.#log = options.log
  }

  async load(): Promise<void> {
    const gone = new Set(await this.#sink.storedIds())
    for (const kind of edgeKinds) {
      let beforeId: string | undefined
      do {
        const configs = await this.#store.read(async (reader) => {
          const some = await reader.page({ kind, limit: AT_A_TIME, ...(beforeId !== undefined && { beforeId }) })
          beforeId = some.at(-1)?.id
          return readEdgeConfigs(reader, this.#sealer, some)
        })
        for (const { id } of configs) gone.delete(id)
        if (configs.length > 0) await this.#sink.change({ applied: configs, removed: [], isIdle: true })
        // SQLite answers synchronously: without a pause no visitor would be served until all is read.
        await ownTurn()
      } while (beforeId !== undefined)
    }
    if (gone.size > 0) await this.#sink.change({ applied: [], removed: [...gone], isIdle: false })
  }

  async apply(changes: readonly Change[]): Promise<void> {
    const ids = await this.#store.read((reader) => touched(reader, changes))
    for (let from = 0; from < ids.length; from += AT_A_TIME) {
      const some = ids.slice(from, from + AT_A_TIME)
      const applied = await this.#store.read(async (reader) =>
        readEdgeConfigs(reader, this.#sealer, await reader.resources(some)),
      )
      const found = new Set(applied.map(({ id }) => id))
      await this.#sink.change({ applied, removed: some.filter((id) => !found.has(id)), isIdle: false })
      this.#log.debug({ edges: some }, 'edges changed')
      if (from + AT_A_TIME < ids.length) await ownTurn()
    }
  }
}

/** The edges that `changes` affect, directly or through what they refer to. */
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
