/** Edges that data planes cannot serve. Planes report them and nothing is stored, so this is not in the registry. */
import { closed, nullable } from '../../lib/shape/schema.ts'
import { Type } from '../../lib/shape/type.ts'
import { counted } from './resource.ts'

export const brokenEdges = counted({
  kind: 'broken_edges',
  noun: 'list of broken edges',
  about: 'Edges and routes that refuse traffic, because the server cannot serve them with their present configuration.',
  prefix: '',
  path: '/broken_edges',
  listKey: null,
  access: 'account',
  shows: {
    broken_edges: Type.Array(
      closed({
        edge_id: Type.String({ description: 'Id of the edge.' }),
        route_id: nullable(Type.String({ description: 'Id of the route; null when it is the whole edge.' })),
        reason: Type.String({ description: 'What is wrong.' }),
      }),
      { description: 'At most 100, as found by the node that answers.' },
    ),
  },
})
