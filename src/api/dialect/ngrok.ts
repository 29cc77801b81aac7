/** The dialect of ngrok's clients, chosen by their version header. */

import type { Route } from '../routes.ts'
import type { Dialect } from './dialect.ts'
import { numberOf } from './ngrok-numbers.ts'
import { shownPolicy } from './ngrok-policy.ts'

type Json = Readonly<Record<string, unknown>>

export const ngrok: Dialect = {
  operationHeaders: ['service-operation-id', 'ngrok-operation-id'],
  // The npm client writes the name as it stands in its own code.
  queryAliases: new Map([['beforeId', 'before_id']]),
  errorCode: (refusal, route) => `ERR_NGROK_${numberOf(refusal, route)}`,
  readBody(route, body) {
    if (route.action === 'put_module') return unwrapped(body)
    return route.action === 'create' && route.resource.access === 'owner' ? withoutEmail(body) : body
  },
  answer(route, answer, userAgent) {
    if (answer === undefined) return breaksOnEmpty(route, userAgent) ? {} : undefined
    const spell = spellings[route.resource.kind]
    if (!spell || route.module) return answer
    const { listKey } = route.resource
    const items = route.action === 'list' && listKey !== null ? (answer as Json)[listKey] : undefined
    return Array.isArray(items) ? { ...(answer as Json), [String(listKey)]: items.map(spell) } : spell(answer as Json)
  },
}

/** The npm client sends `{id, edge_id, module: {…}}`; the ids are gone by now. */
function unwrapped(body: Json): unknown {
  const names = Object.keys(body)
  return names.length === 1 && names[0] === 'module' ? (body.module ?? {}) : body
}

/** Older clients may name an owner by e-mail beside the id; a server without mail addresses passes over it. */
function withoutEmail({ owner_email: _, ...rest }: Json): Json {
  return rest
}

/** The npm client parses the body of every answer, and the Python client takes a 204 to a command for a failure. */
function breaksOnEmpty({ action }: Route, userAgent: string): boolean {
  if (userAgent.startsWith('ngrok-api-typescript/')) return true
  return userAgent.startsWith('ngrok-api-python/') && action === 'command'
}

/** How one item is spelled, by kind; others are as ours. */
const spellings: Readonly<Record<string, (item: Json) => Json>> = {
  tunnel_session: (session) => ({
    ...session,
    transport: session.transport === 'service/v2' ? 'ngrok/v2' : session.transport,
  }),
  tcp_edge: withTrafficPolicy,
  tls_edge: withTrafficPolicy,
  https_edge_route: withTrafficPolicy,
  https_edge: (edge) => ({ ...edge, routes: (edge.routes as readonly Json[]).map(withTrafficPolicy) }),
}

function withTrafficPolicy(item: Json): Json {
  return { ...item, traffic_policy: shownPolicy(item.policy) }
}
