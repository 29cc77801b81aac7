/** Reads the logins that a bind asks for: with a well-known provider, or with any that speaks OpenID Connect. */
import { BadValue } from '../../lib/shape/check.ts'
import { Type } from '../../lib/shape/type.ts'
import { refusals } from '../../model/agent-errors.ts'
import type { BindRefusal } from '../../model/endpoint.ts'
import { MAX_SCOPE_BYTES, MAX_SCOPES } from '../login/login-form.ts'
import type { ModuleConfig } from '../module.ts'
import { oauth } from '../oauth/form.ts'
import { checkProvider, MAX_ALLOWED, providerNames } from '../oauth/providers.ts'
import { oidc } from '../oidc/form.ts'
import { hasLogins } from '../policy/form.ts'
import { fieldsOf, isEmpty, settingsOf } from './values.ts'

const scopeRefusals = {
  OAuth: { many: refusals.tooManyOAuthScopes, long: refusals.longOAuthScope },
  OIDC: { many: refusals.tooManyOidcScopes, long: refusals.longOidcScope },
} as const

const text = Type.String({ default: '' })
const texts = Type.Array(Type.String(), { default: [] })
const application = {
  client_id: text,
  client_secret: text,
  /** The vendor's server gives this to agents; ours does not, and refuses it. */
  sealed_client_secret: text,
  allow_emails: texts,
  allow_domains: texts,
  scopes: texts,
}
const oauthForm = Type.Object({ provider: text, ...application })
const oidcForm = Type.Object({ issuer_url: text, ...application })

/** The settings of the `oauth` module; throws `BindRefusal`, `BadValue` or `Refusal`. */
export function readOAuth(value: unknown, name: string): unknown {
  if (isEmpty(value)) return undefined
  const { provider, ...given } = fieldsOf(oauthForm, value, name)
  if (!providerNames.includes(provider)) {
    throw refusals.unknownProvider(name, providerNames.join(', '))
  }
  refuseBorrowed(given, name)
  const settings = { ...clientOf(given), ...listsOf(given, name, 'OAuth') }
  return withSpelling(`${name}.provider.${provider}.`, `${name}.`, () =>
    settingsOf(oauth, { provider: { [provider]: settings } }, name),
  )
}

/** the vendor lends agents its own applications at providers; this server has none to lend. */
function refuseBorrowed({ client_id, client_secret, sealed_client_secret }: Given, name: string): void {
  if (client_id !== '' && client_secret !== '') return
  if (client_secret === '' && sealed_client_secret !== '') throw sealedSecret(name)
  if (client_id !== '') throw refusals.idWithoutSecret(name)
  if (client_secret !== '') throw refusals.secretWithoutId(name)
  throw refusals.noApplication(name)
}

/** The settings of the `oidc` module, plus the allow lists, which its form lacks; throws as `readOAuth` does. */
export function readOidc(value: unknown, name: string): unknown {
  if (isEmpty(value)) return undefined
  const { issuer_url, ...given } = fieldsOf(oidcForm, value, name)
  const { client_id, client_secret, sealed_client_secret } = given
  if (issuer_url === '') throw refusals.noOidcIssuer(name)
  if (client_id === '') throw refusals.noOidcId(name)
  if (client_secret === '' && sealed_client_secret !== '') throw sealedSecret(name)
  if (client_secret === '') throw refusals.noOidcSecret(name)
  const { scopes, ...allow } = listsOf(given, name, 'OIDC')
  withSpelling(`${name}.`, `${name}.`, () => checkProvider(`${name}.`, { ...clientOf(given), scopes, ...allow }))
  const settings = withSpelling(`${name}.issuer`, `${name}.issuer_url`, () =>
    settingsOf(oidc, { ...clientOf(given), issuer: issuer_url, scopes }, name),
  )
  const isOpen = allow.email_addresses.length + allow.email_domains.length === 0
  // Settings are what the module stores: an object.
  return isOpen ? settings : { ...(settings as object), allow }
}

/** With two logins, it would not be clear which of them decides who is let in. */
export function refuseTwoLogins({ oauth, oidc, policy }: Readonly<Record<string, unknown>>): void {
  if (oauth !== undefined && oidc !== undefined) {
    throw refusals.badOption('`OAuth` and `OIDC` are both given; keep one')
  }
  const option = (oauth !== undefined && 'OAuth') || (oidc !== undefined && 'OIDC')
  // The settings of a policy have its rules under the same names.
  if (!option || policy === undefined || !hasLogins(policy as ModuleConfig)) return
  throw refusals.badOption(
    `\`${option}\` is given, and a rule of the traffic policy logs visitors in too; keep one of them`,
  )
}

interface Given {
  readonly client_id: string
  readonly client_secret: string
  readonly sealed_client_secret: string
  readonly allow_emails: readonly string[]
  readonly allow_domains: readonly string[]
  readonly scopes: readonly string[]
}

function clientOf({ client_id, client_secret }: Given) {
  return { client_id, client_secret }
}

/** The lists under the names that modules use, in the form that they accept: addresses in lower case, no duplicates. */
function listsOf(given: Given, name: string, option: keyof typeof scopeRefusals) {
  const boundedList = (
    list: 'allow_emails' | 'allow_domains' | 'scopes',
    max: number,
    refuse: typeof refusals.tooManyEmails,
  ): string[] => {
    const entries = given[list]
    if (entries.length <= max) return [...new Set(list === 'scopes' ? entries : entries.map(lower))]
    throw refuse(`${name}.${list}`, entries.length, max)
  }
  const { many, long } = scopeRefusals[option]
  const scopes = boundedList('scopes', MAX_SCOPES, many)
  if (scopes.some((scope) => Buffer.byteLength(scope) > MAX_SCOPE_BYTES)) {
    throw long(name, MAX_SCOPE_BYTES)
  }
  return {
    scopes,
    email_addresses: boundedList('allow_emails', MAX_ALLOWED, refusals.tooManyEmails),
    email_domains: boundedList('allow_domains', MAX_ALLOWED, refusals.tooManyDomains),
  }
}

function lower(entry: string): string {
  return entry.toLowerCase()
}

function sealedSecret(name: string): BindRefusal {
  return refusals.badOption(`\`${name}\` has a client secret that another server sealed; send it as \`client_secret\``)
}

/** Runs `read`, and puts the agent's names for fields into the messages of modules. */
function withSpelling<T>(at: string, shown: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof BadValue)) throw error
    const respell = (words: string): string =>
      words
        .replaceAll(at, shown)
        .replaceAll(`${shown}email_addresses`, `${shown}allow_emails`)
        .replaceAll(`${shown}email_domains`, `${shown}allow_domains`)
    throw new BadValue(respell(error.field), error.kind, respell(error.message))
  }
}
