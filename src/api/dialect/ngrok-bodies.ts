/** Bodies as ngrok's clients send them, read as our schemas know them. */
import type { SchemaNode } from '../../lib/shape/check.ts'
import type { ApiRoute } from '../routes.ts'

type Json = Readonly<Record<string, unknown>>

/** The body of a call of `route`, less the ids of its path. */
export function readBody(route: ApiRoute, body: Json): unknown {
  if (route.action === 'put_module') return withoutUnset(route.body, unwrapped(body))
  const said = Object.entries(body).filter(([name, value]) => !saysNothing(route, name, value))
  if (route.action === 'create') return withoutUnset(route.body, Object.fromEntries(said))
  // An update may empty a text (D10); what a field holds inside, such as a module, it replaces.
  return Object.fromEntries(said.map(([name, value]) => [name, withoutUnset(fieldOf(route.body, name), value)]))
}

/** The npm client sends `{id, edge_id, module: {…}}`; the ids are gone by now. */
function unwrapped(body: Json): unknown {
  const names = Object.keys(body)
  return names.length === 1 && names[0] === 'module' ? (body.module ?? {}) : body
}

/**
 * Whether a field of a create or update is sent but asks for nothing: clients send `""`, `[]` or `{}` for fields that
 * their caller did not name, newer ones for fields that there are not here; the Python client does in updates for what
 * could never be emptied, a field that a create requires or one that takes certain words only.
 */
function saysNothing({ action, body, resource }: ApiRoute, name: string, value: unknown): boolean {
  const { access, create, kind } = resource
  // Who owns a key was once named by e-mail beside the id; here nobody has an address.
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

/** Fields of earlier years, which clients of ours may still send and which decide nothing here. */
function isObsolete(name: string, kind: string, action: ApiRoute['action']): boolean {
  // Rules have an action each, and must; that of their policy came before.
  if (kind === 'ip_policy') return name === 'action'
  // Edges took the place of endpoint configurations.
  if (kind === 'reserved_addr') return name === 'endpoint_configuration_id'
  if (kind !== 'reserved_domain') return false
  return /^https?_endpoint_configuration_id$/.test(name) || (name === 'region' && action === 'update')
}

/** Where a field that is left out does not mean the same as an empty one, and clients cannot leave it out. */
const unnamedOnCreate: Readonly<Record<string, readonly string[]>> = {
  ssh_certificate_authority: ['private_key_type', 'elliptic_curve', 'key_size'],
  ssh_host_certificate: ['valid_after', 'valid_until'],
  ssh_user_certificate: ['valid_after', 'valid_until', 'extensions'],
}

/** `value` without texts that are empty where `schema` lets them be left out, at any depth that it knows. */
function withoutUnset(schema: unknown, value: unknown): unknown {
  const { properties, required = [] } = (schema ?? {}) as SchemaNode
  if (!properties || typeof value !== 'object' || value === null || Array.isArray(value)) return value
  const kept = Object.entries(value).flatMap(([name, each]) => {
    const field = Object.hasOwn(properties, name) ? properties[name] : undefined
    // Texts alone: an empty one in place of a module is a mistake, and to drop it would leave an edge unguarded.
    const isText = field?.type === 'string' || field?.enum !== undefined
    const mayLack = isText && (!required.includes(name) || field.default !== undefined)
    return each === '' && mayLack ? [] : [[name, withoutUnset(field, each)] as const]
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
