/** Routes of an HTTPS edge: a path, and the modules that guard and serve it. */
import { BadValue } from '../../lib/shape/check.ts'
import { Type } from '../../lib/shape/type.ts'
import { modulesAt } from '../../modules/forms.ts'
import { storedKind } from './resource.ts'
import { description, metadata } from './resource-fields.ts'

export const httpsEdgeRoutes = storedKind({
  kind: 'https_edge_route',
  about: 'A path of an HTTPS edge and its modules. An exact path wins, then the longest prefix.',
  prefix: 'edghtsrt_',
  path: '/edges/https/{edge_id}/routes',
  // There is no list operation: the edge shows its routes.
  listKey: null,
  access: 'account',
  place: 'route',
  modules: modulesAt('route'),
  parent: { kind: 'https_edge', field: 'edge_id', in: 'path', shownAs: 'edge_id' },
  form: {
    match_type: Type.Enum(['exact_path', 'path_prefix'], { description: 'How `match` is compared with the path.' }),
    match: Type.String({ description: 'The path, such as `/` or `/api`.', minLength: 1, maxBytes: 1024 }),
    description,
    metadata,
  },
  settle(fields) {
    checkMatch(fields.match)
    return fields
  },
  claims: ({ match }, edgeId) => [
    {
      scope: 'route_match',
      key: `${edgeId} ${match}`,
      // Even with another `match_type` (D41).
      taken: {
        code: 'ROUTE_MATCH_IN_USE',
        msg: 'another route of this edge has the same `match`; update that one',
        field: 'match',
      },
    },
  ],
})

/** `match` is compared with the decoded path, so it is written decoded. A query or fragment could never match. */
function checkMatch(match: string): void {
  if (!match.startsWith('/')) throw new BadValue('match', 'value', '`match` must start with `/`')
  if (/[\p{Cc}?#]/u.test(match)) {
    throw new BadValue('match', 'value', '`match` is a path: it cannot hold `?`, `#` or control characters')
  }
}
