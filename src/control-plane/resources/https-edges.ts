/** HTTPS edges: public names that serve HTTP through routes. */
import { Type } from '../../lib/shape/type.ts'
import { modulesAt } from '../../modules/forms.ts'
import { checkNames, hostports, nameClaims } from './hostports.ts'
import { httpsEdgeRoutes } from './https-edge-routes.ts'
import { storedKind } from './resource.ts'
import { description, metadata } from './resource-fields.ts'

export const httpsEdges = storedKind({
  kind: 'https_edge',
  about: 'Public HTTPS listeners; their routes decide what happens to each path.',
  prefix: 'edghts_',
  path: '/edges/https',
  access: 'account',
  place: 'https',
  modules: modulesAt('https'),
  embeds: { field: 'routes', kind: httpsEdgeRoutes.kind },
  form: { description, metadata, hostports },
  shows: { routes: Type.Array(httpsEdgeRoutes.view, { description: 'The routes of the edge, oldest first.' }) },
  settle: (fields, around) => ({ ...fields, hostports: checkNames(fields.hostports, around) }),
  read: ({ hostports }) => ({ hostports: hostports.length > 0 ? hostports : null }),
  claims: ({ hostports }) => nameClaims(hostports),
})
