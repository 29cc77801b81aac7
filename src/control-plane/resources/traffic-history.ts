/** Recent traffic in numbers. */
import { closedObject, nullable } from '../../lib/shape/schema.ts'
import { Type } from '../../lib/shape/type.ts'
import { presentKind } from './resource.ts'

const count = (description: string) => Type.Integer({ description })
const took = (description: string) => nullable(Type.Number({ description }))

const point = closedObject({
  at: Type.String({ description: 'When its interval began, RFC 3339.' }),
  seconds: Type.Number({ description: 'How much of its interval was counted, in seconds: divide by it for a rate.' }),
  requests: count('Requests of visitors.'),
  errors: count('Requests answered with 500 or above, or not at all.'),
  refused: count('Connections and requests that were not let through.'),
  connections: count('New connections of visitors.'),
  bytes_in: count('Bytes from visitors.'),
  bytes_out: count('Bytes to visitors.'),
  p50_ms: took('Half of the requests took at most this long, in milliseconds, estimated; null when there were none.'),
  p99_ms: took('The same for 99 of 100 requests.'),
  open: count('Connections of visitors that were open at its end.'),
  sessions: count('Sessions of agents that were online at its end.'),
  tunnels: count('Tunnels that were online at its end.'),
})

/** Data planes keep the numbers for a day; nothing is stored, so there are no ids. */
export const trafficHistory = presentKind({
  kind: 'traffic_history',
  noun: 'history of traffic',
  about: 'Traffic numbers of the last minutes and of the last day. Admins only.',
  path: '/traffic',
  listKey: null,
  access: 'admin',
  routes: [
    {
      operation: 'get_traffic_minutes',
      summary: 'Get the numbers of the last 15 minutes',
      method: 'GET',
      at: '/minutes',
    },
    { operation: 'get_traffic_day', summary: 'Get the numbers of the last day', method: 'GET', at: '/day' },
  ],
  shows: {
    interval: count('Seconds from one point to the next.'),
    nodes: Type.Array(Type.String(), { description: 'Names of the nodes whose numbers are included.' }),
    missing: Type.Array(Type.String(), { description: 'Names of the nodes that did not answer.' }),
    points: Type.Array(point, { description: 'Oldest first; there is none for an interval in which no node ran.' }),
  },
})
