/** Reads the options of binds in the form that agents send: names in any case, defaults left out, bytes in base64. */
import type { Static, TObject } from 'typebox'
import { readCidr } from '../../lib/net/cidr.ts'
import { BadInput } from '../../lib/shape/bad-input.ts'
import { BadValue, check } from '../../lib/shape/check.ts'
import { Type } from '../../lib/shape/type.ts'
import { refusals } from '../../model/agent-errors.ts'
import { webhookProviders } from '../../model/webhook-providers.ts'
import type { BasicAuthSettings } from '../basic_auth/form.ts'
import { circuitBreaker } from '../circuit_breaker/form.ts'
import type { IpRestrictionSettings } from '../ip_restriction/form.ts'
import type { Lookup, Module, ModuleConfig } from '../module.ts'
import { userAgentFilter } from '../user_agent_filter/form.ts'
import { webhookVerification } from '../webhook_verification/form.ts'

export type BindProto = 'http' | 'https' | 'tcp' | 'tls'

/** Whether an option is not set: agents send empty values for options that the user left out. */
export function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null || value === '' || value === false) return true
  return typeof value === 'object' && Object.values(value).every(isUnset)
}

function isUnset(value: unknown): boolean {
  if (value === undefined || value === null || value === '') return true
  return typeof value === 'object' && Object.keys(value).length === 0
}

/** The fields of an option, checked. Their names may be in any case. */
export function fieldsOf<S extends TObject>(form: S, value: unknown, name: string): Static<S> {
  const named: unknown = check(Type.Object({ [name]: form }), { [name]: lowerNames(value) })
  // The schema above has a field of this name.
  return (named as Record<string, Static<S>>)[name] as Static<S>
}

/** Names in lower case, and no unset fields: an unknown field is accepted as long as it is unset. */
function lowerNames(value: unknown, depth = 0): unknown {
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return value
  if (Array.isArray(value)) return value.map((each) => lowerNames(each, depth + 1))
  const fields = Object.entries(value).filter(([, each]) => !isUnset(each))
  return Object.fromEntries(fields.map(([name, each]) => [name.toLowerCase(), lowerNames(each, depth + 1)]))
}

/** The deepest form is a list of objects in an object; anything deeper is refused anyway. */
const MAX_DEPTH = 3

const MAX_CIDRS = 1000
const cidrs = Type.Array(Type.String(), { default: [], maxItems: MAX_CIDRS })
const networksForm = Type.Object({ allow_cidrs: cidrs, deny_cidrs: cidrs })

export function readNetworks(value: unknown, name: string): IpRestrictionSettings {
  const { allow_cidrs, deny_cidrs } = fieldsOf(networksForm, value, name)
  if (allow_cidrs.length === 0) {
    throw refusals.noNetwork(name)
  }
  return { allow: allow_cidrs.map(network), deny: deny_cidrs.map(network) }
}

function network(text: string): string {
  try {
    return readCidr(text).canonical
  } catch (error) {
    if (!(error instanceof BadInput)) throw error
    throw refusals.badNetwork(error.message)
  }
}

const MAX_CREDENTIALS = 10
const MIN_PASSWORD = 8
const MAX_PASSWORD = 128
const MAX_USERNAME_BYTES = 255

const text = Type.Optional(Type.String())
const credentialsForm = Type.Object({
  credentials: Type.Array(
    Type.Object({
      username: Type.String({ default: '', maxBytes: MAX_USERNAME_BYTES }),
      cleartext_password: Type.String({ default: '' }),
      hashed_password: text,
    }),
    { default: [], maxItems: MAX_CREDENTIALS },
  ),
})

export function readCredentials(value: unknown, name: string): BasicAuthSettings | undefined {
  const { credentials } = fieldsOf(credentialsForm, value, name)
  if (credentials.length === 0) throw refusals.badUser(`\`${name}\` names no credentials`)
  return {
    credentials: credentials.map(({ username, cleartext_password, hashed_password }) => {
      if (hashed_password !== undefined && cleartext_password === '') {
        throw refusals.badOption(`\`${name}\` has a password that another server hashed; send it in clear`)
      }
      return credential(username, cleartext_password)
    }),
  }
}

/** `user:password`, as the oldest agents send it. */
export function readPair(value: unknown, name: string): BasicAuthSettings {
  if (typeof value !== 'string') throw refusals.badOption(`\`${name}\` must be \`user:password\``)
  const colon = value.indexOf(':')
  return { credentials: [credential(value.slice(0, Math.max(colon, 0)), value.slice(colon + 1))] }
}

function credential(username: string, password: string): BasicAuthSettings['credentials'][number] {
  if (username === '') throw refusals.badUser('the user name of a credential must not be empty')
  // RFC 7617 §2: the first colon ends the name, so such a user could never log in.
  if (username.includes(':')) throw refusals.badUser('the user name of a credential must not hold a colon')
  if (Buffer.byteLength(username) > MAX_USERNAME_BYTES) throw refusals.badUser('a user name is too long')
  if (password.length < MIN_PASSWORD || password.length > MAX_PASSWORD) {
    throw refusals.badPassword(MIN_PASSWORD, MAX_PASSWORD, password.length)
  }
  return { username, password }
}

const userAgentsForm = Type.Object({
  allow: Type.Optional(Type.Array(Type.String())),
  deny: Type.Optional(Type.Array(Type.String())),
})

export function readUserAgents(value: unknown, name: string): unknown {
  return isEmpty(value) ? undefined : settingsOf(userAgentFilter, fieldsOf(userAgentsForm, value, name), name)
}

const circuitBreakerForm = Type.Object({ error_threshold: Type.Number() })

/** Agents set only the threshold; the rest has defaults. */
export function readCircuitBreaker(value: unknown, name: string): unknown {
  try {
    const { error_threshold } = fieldsOf(circuitBreakerForm, value, name)
    return settingsOf(circuitBreaker, { error_threshold_percentage: error_threshold }, name)
  } catch (error) {
    if (!(error instanceof BadValue)) throw error
    throw refusals.badThreshold(name)
  }
}

const webhookForm = Type.Object({
  provider: Type.String({ default: '' }),
  secret: Type.String({ default: '' }),
  sealed_secret: text,
})

export function readWebhook(value: unknown, name: string): unknown {
  const { provider, secret } = fieldsOf(webhookForm, value, name)
  const supported = webhookProviders.join(', ')
  if (provider === '') throw refusals.noWebhookProvider(name, supported)
  if (!webhookProviders.includes(provider)) {
    throw refusals.unknownWebhookProvider(supported)
  }
  try {
    return settingsOf(webhookVerification, { provider, secret }, name)
  } catch (error) {
    if (!(error instanceof BadValue)) throw error
    throw (provider === 'sendgrid' ? refusals.badSendgridKey : refusals.badOption)(error.message)
  }
}

/** The settings that a module would have if this were stored on a route. */
export function settingsOf(module: Module, given: Readonly<Record<string, unknown>>, name: string): unknown {
  const form = module.at.route
  if (!form) throw new Error(`module ${module.name} does not attach to a route`)
  const where = { place: 'route', at: `${name}.` } as const
  const config = check(Type.Object({ [name]: form }), { [name]: given })[name] as ModuleConfig // a module's form
  const accepted = module.accept?.(config, where) ?? config
  return module.resolve(accepted, nothing, 'route')
}

/** The options of an agent refer to no resources. */
export const nothing: Lookup = { ipRules: noResource, authority: noResource, backend: noResource }

function noResource(): never {
  throw new Error('an agent cannot name a resource')
}

/** An option without settings. */
export function readSwitch(value: unknown, name: string): Readonly<Record<string, never>> {
  if (value !== true && (typeof value !== 'object' || Array.isArray(value))) {
    throw refusals.badOption(`\`${name}\` must be an object`)
  }
  return {}
}
