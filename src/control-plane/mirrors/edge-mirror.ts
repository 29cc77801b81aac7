/** Keeps a data plane up to date with the stored edges: all of them at first, then those that a change affects. */
import { ownTurn } from '../../lib/threads/others-turn.ts'
import type { PlaneCalls } from '../../link/planes/plane-calls.ts'
import { referredByModules } from '../../modules/forms.ts'
import { NESTING_KINDS } from '../resources/backend-lists.ts'
import { httpsEdgeRoutes } from '../resources/https-edge-routes.ts'
import type { ControlTools } from '../store/control-tools.ts'
import type { Change } from '../store/feed.ts'
import type { Followed } from '../store/feed-follower.ts'
import type { Reader, StoredResource } from '../store/reader.ts'
import { edgeResources, readEdgeConfigs } from './edge-configs.ts'
import { pagesOf } from './mirror.ts'

/** Takes the edges that are to be served. */
export interface EdgeSink {
  /**
   * Serves the applied edges from now on in place of their former versions, and the removed ones no longer. A broken edge does
   * not hold up the others. `isIdle` leaves compiling to the first visitor. Gives the ids of edges whose former versions are
   * served until the new ones are compiled.
   */
  change(change: Parameters<PlaneCalls['edges']>[0]): Promise<readonly string[] | undefined>
  /** Resolves when the edges that `change` gave back are in force, too. */
  settled(ids: readonly string[]): Promise<unknown>
  /** Ids of the stored edges that are served now. */
  storedIds(): Promise<readonly string[]>
}

interface MirrorEdgesOptions extends Pick<ControlTools, 'store' | 'sealer' | 'log'> {
  readonly sink: EdgeSink
}

/** How many edges are read at once; each may have many routes. */
const AT_A_TIME = 100

/** More levels than backends can be nested (D28), so that none is missed. */
const WAY_UP = { through: NESTING_KINDS, levels: 16 }

const edgeKinds = [...edgeResources.keys()]

/** Kinds that edges and routes refer to; a change of one affects all edges that refer to it. */
const referredKinds = new Set([...referredByModules(), ...NESTING_KINDS])

/**
 * Not a `mirror`: an edge changes with everything that it refers to, and the plane itself says which edges it serves. There
 * may be a hundred thousand edges, so they are sent in batches and not kept here.
 */
export function mirrorEdges({ store, sealer, sink, log }: MirrorEdgesOptions): Followed {
  const configsOf = (edges: readonly StoredResource[]) => store.read((reader) => readEdgeConfigs(reader, sealer, edges))
  return {
    async load() {
      const gone = new Set(await sink.storedIds())
      for await (const edges of pagesOf(store, edgeKinds)) {
        const applied = await configsOf(edges)
        for (const { id } of applied) gone.delete(id)
        await sink.change({ applied, removed: [], isIdle: true })
      }
      if (gone.size > 0) await sink.change({ applied: [], removed: [...gone], isIdle: false })
    },
    async apply(changes) {
      const ids = await store.read((reader) => touchedEdges(reader, changes))
      const coming: string[] = []
      for (let from = 0; from < ids.length; from += AT_A_TIME) {
        const some = ids.slice(from, from + AT_A_TIME)
        const applied = await configsOf(await store.read((reader) => reader.resources(some)))
        const found = new Set(applied.map(({ id }) => id))
        const removed = some.filter((id) => !found.has(id))
        coming.push(...((await sink.change({ applied, removed, isIdle: false })) ?? []))
        log.debug({ edges: some }, 'edges changed')
        if (from + AT_A_TIME < ids.length) await ownTurn()
      }
      return coming.length === 0 ? undefined : { later: sink.settled(coming) }
    },
  }
}

/** The edges that `changes` affect, directly or through what they refer to. */
async function touchedEdges(reader: Reader, changes: readonly Change[]): Promise<string[]> {
  const ids = new Set<string>()
  for (const { kind, id } of changes) {
    if (edgeResources.has(kind)) ids.add(id)
    if (!referredKinds.has(kind)) continue
    const referrers = await reader.referrersThrough(id, WAY_UP, [...edgeKinds, httpsEdgeRoutes.kind])
    for (const referrer of referrers) {
      ids.add(referrer.kind === httpsEdgeRoutes.kind ? (referrer.parentId ?? '') : referrer.id)
    }
  }
  return [...ids]
}
