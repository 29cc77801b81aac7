/** The providers that `oauth` knows, and their settings: the application to log in with, and who is let in. */
import { isIP } from 'node:net'
import type { Static, TProperties } from 'typebox'
import { BadInput } from '../../lib/shape/bad-input.ts'
import { BadValue } from '../../lib/shape/check.ts'
import { Type } from '../../lib/shape/type.ts'
import { refuseRepeats } from '../../model/fields.ts'
import { readName } from '../../model/hostport.ts'
import { checkScopes, scopeList } from '../login/login-form.ts'
import { applicationFields } from '../policy/engine/openid-form.ts'

export const MAX_ALLOWED = 1000
/** RFC 5321 §4.5.3.1.3: the longest e-mail address; nothing else in these lists is longer. */
const MAX_ALLOWED_BYTES = 254

const settings = {
  ...applicationFields,
  scopes: scopeList('Scopes to ask the provider for, besides those that the login itself needs.'),
  email_addresses: allowedList('E-mail addresses, in lower case.'),
  email_domains: allowedList('Domains of e-mail addresses, in lower case; a domain does not include its subdomains.'),
}

export const providers = Type.Object(
  {
    amazon: provider('Amazon', {}),
    facebook: provider('Facebook', {}),
    github: provider('GitHub', {
      teams: allowedList('Teams as `organization/team`, or their numbers.'),
      organizations: allowedList('Names of organizations.'),
    }),
    gitlab: provider('GitLab', {}),
    google: provider('Google', { groups: allowedList('E-mail addresses of groups, in lower case.') }),
    linkedin: provider('LinkedIn', {}),
    microsoft: provider('Microsoft', {}),
    twitch: provider('Twitch', {}),
  },
  {
    additionalProperties: false,
    default: {},
    description:
      'The provider that visitors log in with, exactly one, and who is let in: whoever one of its lists names, or everybody who logs in when they are all empty.',
  },
)

export const providerNames: readonly string[] = Object.keys(providers.properties)

type Providers = Required<Static<typeof providers>>
export type ProviderSettings = Providers[keyof Providers]

/** What it costs to check one entry of a list, in the unit of `patternPrice`: some 20 µs for the longest names. */
export const ENTRY_PRICE = 10

/** What `checkProvider` costs, in the same unit. */
export function checkPrice(given: ProviderSettings): number {
  // A provider has some of the lists.
  const present: Partial<Record<ListName, readonly string[]>> = given
  return lists.reduce((price, { name }) => price + ENTRY_PRICE * (present[name]?.length ?? 0), 0)
}

/** Throws `BadValue` for settings that no login could use; `at` is the path before each field. */
export function checkProvider(at: string, given: ProviderSettings): void {
  checkScopes(`${at}scopes`, given.scopes)
  // A provider has some of the lists.
  const present: Partial<Record<ListName, readonly string[]>> = given
  for (const list of lists) checkList(`${at}${list.name}`, list, present[list.name] ?? [])
}

type ListName = 'email_addresses' | 'email_domains' | 'teams' | 'organizations' | 'groups'

interface List {
  readonly name: ListName
  readonly fits: (entry: string) => boolean
  /** What an entry must be, in the words of a message. */
  readonly must: string
}

const lists: readonly List[] = [
  { name: 'email_addresses', fits: isEmail, must: 'be an e-mail address in lower case, such as `ada@example.com`' },
  {
    name: 'email_domains',
    fits: isDomain,
    must: 'be a domain in lower case, such as `example.com`, in punycode where it has other letters',
  },
  {
    name: 'teams',
    fits: (entry) => /^(\d+|[\w.-]+\/[\w.-]+)$/.test(entry),
    must: 'be a team as `organization/team`, or its number',
  },
  {
    name: 'organizations',
    fits: (entry) => /^[\w.-]+$/.test(entry),
    must: 'be the name of an organization as it is in its URL',
  },
  { name: 'groups', fits: isEmail, must: 'be the e-mail address of a group in lower case, such as `team@example.com`' },
]

function checkList(field: string, { fits, must }: List, entries: readonly string[]): void {
  for (const [i, entry] of entries.entries()) {
    if (!fits(entry)) throw new BadValue(`${field}[${i}]`, 'value', `\`${field}[${i}]\` must ${must}`)
  }
  // Entries that differ only in case are the same.
  refuseRepeats(field, entries, (entry) => entry.toLowerCase())
}

/** Only lower case is accepted, since that is how addresses are compared. */
function isEmail(text: string): boolean {
  const [, local = '', domain = ''] = /^(.*)@([^@]*)$/s.exec(text) ?? []
  return /^[^\s@\p{Cc}]{1,64}$/u.test(local) && local === local.toLowerCase() && isDomain(domain)
}

function isDomain(text: string): boolean {
  try {
    return readName(text) === text && !text.startsWith('*') && !isIP(text)
  } catch (error) {
    if (error instanceof BadInput) return false
    throw error
  }
}

function allowedList(description: string) {
  return Type.Array(Type.String({ minLength: 1, maxBytes: MAX_ALLOWED_BYTES }), {
    default: [],
    maxItems: MAX_ALLOWED,
    description: `Who is let in: ${description}`,
  })
}

function provider<More extends TProperties>(name: string, more: More) {
  const about = { additionalProperties: false, description: `Visitors log in with ${name}.` }
  return Type.Optional(Type.Object({ ...settings, ...more }, about))
}
