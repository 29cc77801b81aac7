/** Lists the edges that refuse traffic because a data plane cannot serve them. */
import { MAX_BROKEN_LISTED } from '../../model/broken-edge.ts'
import type { AttachedPlanes } from '../mirrors/attached-planes.ts'
import type { Fields } from '../resources/resource.ts'

/**
 * The broken edges as the API shows them (`control-plane/resources/broken-edges.ts`). All nodes have the same ones, so only
 * this node is asked.
 */
export async function brokenEdgesHere(planes: Pick<AttachedPlanes, 'askEach'>): Promise<Fields> {
  const answers = await planes.askEach('brokenEdges', null)
  const found = answers.flatMap(({ answer }) => answer)
  // All data planes report the same ones.
  const parts = new Map(found.map((each) => [`${each.edgeId} ${each.routeId ?? ''}`, each]))
  const listed = [...parts.values()].slice(0, MAX_BROKEN_LISTED)
  return {
    broken_edges: listed.map(({ edgeId, routeId, reason }) => ({ edge_id: edgeId, route_id: routeId ?? null, reason })),
  }
}
