/** The dialect of ngrok's clients, chosen by their version header. */
import type { SchemaNode } from '../../lib/shape/check.ts'
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
    return Object.fromEntries(Object.entries(body).filter(([name, value]) => !saysNothing(route, name, value)))
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
 * Whether a field of a create or update is sent but asks for nothing: clients send `""`, `[]` or `{}` for fields that
 * their caller did not name, newer ones for fields that there are not here; the Python client does in updates for what
 * could never be emptied, a field that a create requires. Who owns a key was once named by e-mail beside the id; here
 * nobody has an address.
 */
function saysNothing(
  { action, body, resource: { access, create, kind } }: Route,
  name: string,
  value: unknown,
): boolean {
  if (name === 'owner_email') return action === 'create' && access === 'owner'
  if (action === 'create' && unnamedOnCreate[kind]?.includes(name)) return isEmpty(value) || value === 0
  if (!isEmpty(value)) return false
  if (!Object.hasOwn(body?.properties ?? {}, name)) return true
  const { required = [], properties } = create as SchemaNode
  return action === 'update' && required.includes(name) && properties?.[name]?.default === undefined
}

/** Where a field that is left out does not mean the same as an empty one, and clients cannot leave it out. */
const unnamedOnCreate: Readonly<Record<string, readonly string[]>> = {
  ssh_certificate_authority: ['private_key_type', 'elliptic_curve', 'key_size'],
  ssh_host_certificate: ['valid_after', 'valid_until'],
  ssh_user_certificate: ['valid_after', 'valid_until', 'extensions'],
}

function isEmpty(value: unknown): boolean {
  if (typeof value === 'object' && value !== null) return Object.keys(value).length === 0
  return value === '' || value === null
}

/** The npm client parses the body of every answer, and the Python client takes a 204 to a command for a failure. */
function breaksOnEmpty({ action }: Route, userAgent: string): boolean {
  if (userAgent.startsWith('ngrok-api-typescript/')) return true
  return userAgent.startsWith('ngrok-api-python/') && action === 'command'
}

function spelledSession(session: Json): Json {
  return { ...session, transport: session.transport === 'service/v2' ? 'ngrok/v2' : session.transport }
}
