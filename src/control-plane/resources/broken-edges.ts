/** Edges that data planes cannot serve. */
import { closedObject, nullable } from '../../lib/shape/schema.ts'
import { Type } from '../../lib/shape/type.ts'
import { presentKind } from './resource.ts'

/** Data planes report them; nothing is stored, so there are no ids. */
export const brokenEdges = presentKind({
  kind: 'broken_edges',
  noun: 'list of broken edges',
  about: 'Edges and routes that refuse traffic, because the server cannot serve them with their present configuration.',
  path: '/broken_edges',
  listKey: null,
  routes: [
    {
      operation: 'list_broken_edges',
      summary: 'List edges and routes that refuse traffic, and why',
      method: 'GET',
      at: '',
    },
  ],
  shows: {
    broken_edges: Type.Array(
      closedObject({
        edge_id: Type.String({ description: 'Id of the edge.' }),
        route_id: nullable(Type.String({ description: 'Id of the route; null when it is the whole edge.' })),
        reason: Type.String({ description: 'What is wrong.' }),
      }),
      { description: 'At most 100, as found by the node that answers.' },
    ),
  },
})
