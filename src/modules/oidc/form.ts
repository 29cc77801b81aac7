/** The `oidc` module: visitors of a route log in with an OpenID Connect provider. */
import { isIPv4 } from 'node:net'
import type { Static } from 'typebox'
import { BadValue } from '../../lib/shape/check.ts'
import { Type } from '../../lib/shape/type.ts'
import type { AllowLists } from '../login/allow-list.ts'
import { checkScopes, type LoginConfig, loginFields, scopeList } from '../login/login-form.ts'
import { defineModule, moduleForm } from '../module.ts'

const form = moduleForm({
  ...loginFields,
  issuer: Type.String({
    default: '',
    maxBytes: 255,
    description: 'URL of the provider, at which its discovery document is found. `https`, or `http` to loopback.',
  }),
  client_id: Type.String({
    default: '',
    maxBytes: 1024,
    description: 'Client id that the provider gave this application.',
  }),
  client_secret: Type.String({
    default: '',
    maxBytes: 4096,
    description: 'Client secret that the provider gave this application.',
  }),
  scopes: scopeList('Scopes to ask the provider for; `openid` is always asked for.'),
})

export interface OidcSettings extends LoginConfig, Omit<Static<typeof form>, 'enabled'> {
  /** Further parameters of the authorization request. */
  readonly params?: Readonly<Record<string, string>>
  /** Seconds after which the provider is asked about the user again; 0 for never. */
  readonly check_interval?: number
  /** Who is let in; everybody who logs in when absent. Only agents set it: the form of the module has no such lists. */
  readonly allow?: AllowLists | undefined
}

export const oidc = defineModule({
  name: 'oidc',
  about: 'Lets in visitors who logged in with an OpenID Connect provider.',
  at: { route: form },
  needs: () => 'http',
  secrets: ['client_secret'],
  accept: (config, { at }) => {
    const { issuer, client_id, client_secret, scopes } = config
    if (config.enabled) requireAll(at, { issuer, client_id, client_secret })
    if (issuer !== '') checkIssuer(`${at}issuer`, issuer)
    checkScopes(`${at}scopes`, scopes)
    return config
  },
  resolve: (config): OidcSettings => config,
})

/** D38: a disabled module may lack them. */
function requireAll(at: string, needed: Readonly<Record<string, string>>): void {
  const missing = Object.keys(needed).filter((name) => needed[name] === '')
  const [first] = missing
  if (first === undefined) return
  const names = missing.map((name) => `\`${at}${name}\``).join(', ')
  throw new BadValue(`${at}${first}`, 'required', `an enabled \`oidc\` module needs ${names}; set it, or disable it`)
}

/** The messages do not repeat the URL: it may hold a password, which is one of the reasons to refuse it. */
function checkIssuer(field: string, issuer: string): void {
  const badField = (must: string): BadValue => new BadValue(field, 'value', `\`${field}\` must ${must}`)
  // By hand first: the URL parser forgives spaces, backslashes and missing slashes, and hides an empty `?`, `#` or `@`.
  if (/[?#]/.test(issuer)) throw badField('have no query and no fragment')
  if (/^[^/]*\/\/[^/]*@/.test(issuer)) throw badField('have no user name or password')
  const url = /^https?:\/\/[^\s\\]+$/i.test(issuer) ? URL.parse(issuer) : null
  if (url === null) throw badField('be a URL such as `https://accounts.example.com`')
  if (url.protocol !== 'https:' && !isLoopback(url.hostname)) {
    throw badField('start with `https://`; `http://` is allowed only for loopback hosts such as `localhost`')
  }
}

/** `hostname` as the URL parser writes it: lower case, IPv6 in brackets, IPv4 as four decimal numbers. */
function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || (isIPv4(hostname) && hostname.startsWith('127.'))
}
