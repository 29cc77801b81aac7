/** Decides who is let in: users that one of the lists names, or everybody who logs in when all lists are empty. */
import type { LoginUser } from '../../model/logins.ts'
import { digestOf, isFault, type LoggedIn, type LoginFault, type LoginProvider } from './login-provider.ts'

/** What a user may belong to at a provider. */
const memberships = ['teams', 'organizations', 'groups'] as const

type Memberships = { readonly [Kind in (typeof memberships)[number]]?: readonly string[] }

export interface AllowLists extends Memberships {
  readonly email_addresses: readonly string[]
  readonly email_domains: readonly string[]
}

/** A user, and what the user belongs to according to the provider, in the form of the lists and in any letter case. */
export interface Belongings extends Memberships {
  /** The e-mail address is one that the provider has verified, or empty. */
  readonly user: LoginUser
}

export function compileAllowLists(lists: AllowLists): (profile: Belongings) => boolean {
  const addresses = lower(lists.email_addresses)
  const domains = lower(lists.email_domains)
  const known = memberships.map((kind) => [kind, lower(lists[kind])] as const)
  const isOpen = [addresses, domains, ...known.map(([, names]) => names)].every(({ size }) => size === 0)
  return (profile) => {
    if (isOpen) return true
    const email = profile.user.email.toLowerCase()
    const at = email.lastIndexOf('@')
    return (
      (at > 0 && (addresses.has(email) || domains.has(email.slice(at + 1)))) ||
      known.some(([kind, names]) => anyIn(profile[kind], names))
    )
  }
}

/** The same provider, but only users that the lists name are let in. When the lists change, logins are judged again. */
export function allowing(lists: AllowLists, provider: LoginProvider): LoginProvider {
  const isAllowed = compileAllowLists(lists)
  const judge = (outcome: LoggedIn | LoginFault): LoggedIn | LoginFault =>
    isFault(outcome) || isAllowed(outcome) ? outcome : { fault: 'LOGIN_NOT_ALLOWED', reason: 'no list names the user' }
  return {
    ...provider,
    rules: digestOf([provider.rules, lists]),
    finish: async (callback) => judge(await provider.finish(callback)),
    async check(login) {
      if (provider.check) return judge(await provider.check(login))
      // The lists need only what the provider sent at login.
      const { isRefused: _, ...kept } = login.kept
      return judge({ user: login.user, kept })
    },
  }
}

function lower(entries: readonly string[] = []): ReadonlySet<string> {
  return new Set(entries.map((each) => each.toLowerCase()))
}

function anyIn(found: readonly string[] = [], allowed: ReadonlySet<string>): boolean {
  return allowed.size > 0 && found.some((each) => each !== '' && allowed.has(each.toLowerCase()))
}
