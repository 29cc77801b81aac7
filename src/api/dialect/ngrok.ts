/** The dialect of ngrok's clients, chosen by their version header. */
import type { SchemaNode } from '../../lib/check.ts'
import type { Route } from '../routes.ts'
import type { Dialect } from './dialect.ts'
import { numberOf } from './ngrok-numbers.ts'

type Json = Readonly<Record<string, unknown>>

export const ngrok: Dialect = {
  operationHeaders: ['service-operation-id', 'ngrok-operation-id'],
  // The npm client writes the name as it stands in its own code.
  queryAliases: new Map([['beforeId', 'before_id']]),
  errorCode: (refusal, route) => `ERR_NGROK_${numberOf(refusal, route)}`,
  readBody(route, body) {
    if (route.action === 'put_module') return unwrapped(body)
    if (route.action === 'update') return withoutEmpties(route, body)
    return route.action === 'create' && route.resource.access === 'owner' ? withoutEmail(body) : body
  },
  // `traffic_policy` beside `policy`: which of the two a client reads depends on its age.
  showsSpellings: true,
  answer(route, answer, userAgent) {
    if (answer === undefined) return breaksOnEmpty(route, userAgent) ? {} : undefined
    if (route.resource.kind !== 'tunnel_session') return answer
    const { tunnel_sessions: items } = answer as Json
    return Array.isArray(items)
      ? { ...(answer as Json), tunnel_sessions: items.map(spelledSession) }
      : spelledSession(answer as Json)
  },
}

/** The npm client sends `{id, edge_id, module: {…}}`; the ids are gone by now. */
function unwrapped(body: Json): unknown {
  const names = Object.keys(body)
  return names.length === 1 && names[0] === 'module' ? (body.module ?? {}) : body
}

/**
 * The Python client sends `""`, `[]` or `{}` for what its caller did not name, where it could never be emptied: a
 * field that a create requires.
 */
function withoutEmpties({ resource: { create } }: Route, body: Json): Json {
  const { required = [], properties } = create as SchemaNode
  const isUnnamed = ([name, value]: [string, unknown]) =>
    required.includes(name) && properties?.[name]?.default === undefined && isEmpty(value)
  return Object.fromEntries(Object.entries(body).filter((entry) => !isUnnamed(entry)))
}

function isEmpty(value: unknown): boolean {
  if (typeof value === 'object' && value !== null) return Object.keys(value).length === 0
  return value === ''
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

function spelledSession(session: Json): Json {
  return { ...session, transport: session.transport === 'service/v2' ? 'ngrok/v2' : session.transport }
}
