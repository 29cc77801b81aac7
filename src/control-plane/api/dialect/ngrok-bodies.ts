/** Converts bodies as ngrok's clients send them to the form of our schemas. */
import type { SchemaNode } from '../../../lib/shape/check.ts'
import type { ApiRoute } from '../routes.ts'

type Json = Readonly<Record<string, unknown>>

/** Converts the body of a call of `route`; `body` is without the ids of the path. */
export function readBody(route: ApiRoute, body: Json): unknown {
  if (route.action === 'put_module') return withoutUnset(route.body, unwrapModule(body))
  const set = Object.entries(body).filter(([name, value]) => !isUnset(route, name, value))
  if (route.action === 'create') return withoutUnset(route.body, Object.fromEntries(set))
  // An update may empty a text (D10), but it replaces a whole module, so empty texts inside one are unset.
  return Object.fromEntries(set.map(([name, value]) => [name, withoutUnset(fieldOf(route.body, name), value)]))
}

/** The npm client sends `{id, edge_id, module: {…}}`; the ids were already removed. */
function unwrapModule(body: Json): unknown {
  const names = Object.keys(body)
  return names.length === 1 && names[0] === 'module' ? (body.module ?? {}) : body
}

/**
 * Whether a field of a create or update is sent but means nothing. Clients send `""`, `[]` or `{}` for fields that
 * their caller did not name; newer clients also for fields that do not exist here. In updates the Python client also
 * does so for fields that can never be empty: those that a create requires, and those that take only certain words.
 */
function isUnset({ action, body, resource }: ApiRoute, name: string, value: unknown): boolean {
  const { access, create, kind } = resource
  // The owner of a key could once be named by e-mail instead of id; here principals have no e-mail address.
  if (name === 'owner_email') return action === 'create' && access === 'owner'
  if (isObsolete(name, kind, action)) return true
  if (action === 'create' && unnamedOnCreate[kind]?.includes(name)) return isEmpty(value) || value === 0
  if (!isEmpty(value)) return false
  const field = fieldOf(body, name)
  if (!field) return true
  if (action !== 'update') return false
  if (value === '' && field.enum && !field.enum.includes('')) return true
  const { required = [] } = create as SchemaNode
  return required.includes(name) && fieldOf(create, name)?.default === undefined
}

/** Fields of earlier versions, which clients may still send and which have no effect here. */
function isObsolete(name: string, kind: string, action: ApiRoute['action']): boolean {
  // Each rule must have an action now; earlier the policy had one.
  if (kind === 'ip_policy') return name === 'action'
  // Edges replaced endpoint configurations.
  if (kind === 'reserved_addr') return name === 'endpoint_configuration_id'
  if (kind !== 'reserved_domain') return false
  return /^https?_endpoint_configuration_id$/.test(name) || (name === 'region' && action === 'update')
}

/** Fields that clients cannot leave out, although a missing one means something else than an empty one. */
const unnamedOnCreate: Readonly<Record<string, readonly string[]>> = {
  ssh_certificate_authority: ['private_key_type', 'elliptic_curve', 'key_size'],
  ssh_host_certificate: ['valid_after', 'valid_until'],
  ssh_user_certificate: ['valid_after', 'valid_until', 'extensions'],
}

/** `value` without the empty texts that `schema` lets a client leave out, at any depth. */
function withoutUnset(schema: unknown, value: unknown): unknown {
  const { properties, required = [] } = (schema ?? {}) as SchemaNode
  if (!properties || typeof value !== 'object' || value === null || Array.isArray(value)) return value
  const kept = Object.entries(value).flatMap(([name, each]) => {
    const field = Object.hasOwn(properties, name) ? properties[name] : undefined
    // Only texts: an empty text in place of a module is a mistake, and dropping it would leave an edge unguarded.
    const isText = field?.type === 'string' || field?.enum !== undefined
    const isOptional = isText && (!required.includes(name) || field.default !== undefined)
    return each === '' && isOptional ? [] : [[name, withoutUnset(field, each)] as const]
  })
  return Object.fromEntries(kept)
}

function fieldOf(schema: ApiRoute['body'], name: string): SchemaNode | undefined {
  const { properties = {} } = (schema ?? {}) as SchemaNode
  return Object.hasOwn(properties, name) ? properties[name] : undefined
}

function isEmpty(value: unknown): boolean {
  if (typeof value === 'object' && value !== null) return Object.keys(value).length === 0
  return value === '' || value === null
}
