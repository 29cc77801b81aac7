/** Edges that refuse traffic, since a data plane of this node cannot serve them. Every node has the same, so no other is asked. */
import { MAX_BROKEN_TOLD } from '../model/broken-edge.ts'
import type { Fields } from '../resources/resource.ts'
import type { AttachedPlanes } from './attached-planes.ts'

/** As the API shows them (`resources/broken-edges.ts`). */
export async function brokenEdgesHere(planes: Pick<AttachedPlanes, 'askEach'>): Promise<Fields> {
  const answers = await planes.askEach('brokenEdges', null)
  const found = answers.flatMap(({ answer }) => answer)
  // Each data plane tells of the same.
  const parts = new Map(found.map((each) => [`${each.edgeId} ${each.routeId ?? ''}`, each]))
  const told = [...parts.values()].slice(0, MAX_BROKEN_TOLD)
  return {
    broken_edges: told.map(({ edgeId, routeId, reason }) => ({ edge_id: edgeId, route_id: routeId ?? null, reason })),
  }
}
