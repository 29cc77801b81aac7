/** The `oidc` module: visitors of a route log in with an OpenID Connect provider. */
import { isIPv4 } from 'node:net'
import { type Static, Type } from 'typebox'
import { BadValue } from '../../lib/check.ts'
import { enabled, MAX_UINT32 } from '../fields.ts'
import type { Module } from '../module.ts'

/** With their length, what keeps the login redirect under 8 KiB, which providers take. */
const MAX_SCOPES = 30

const form = Type.Object(
  {
    enabled,
    options_passthrough: Type.Boolean({
      default: false,
      description: 'Whether OPTIONS requests pass without authentication, as CORS preflights need.',
    }),
    cookie_prefix: Type.String({
      default: '',
      maxBytes: 64,
      pattern: '^[A-Za-z0-9.]*$',
      description: 'Prefix of the names of the session cookies: letters, digits and dots. Empty: `postern.` is used.',
    }),
    inactivity_timeout: Type.Integer({
      default: 0,
      minimum: 0,
      maximum: MAX_UINT32,
      description: 'Seconds without a request after which a visitor must log in again; 0 for no limit.',
    }),
    maximum_duration: Type.Integer({
      default: 0,
      minimum: 0,
      maximum: MAX_UINT32,
      description: 'Seconds after a login after which a visitor must log in again; 0 for no limit.',
    }),
    issuer: Type.String({
      default: '',
      maxBytes: 255,
      description: 'URL of the provider, under which its discovery document lies. `https`, or `http` to loopback.',
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
    scopes: Type.Array(Type.String({ minLength: 1, maxBytes: 255 }), {
      default: [],
      maxItems: MAX_SCOPES,
      description: 'Scopes to ask the provider for; `openid` is always asked for.',
    }),
  },
  { additionalProperties: false },
)

export const oidc: Module = {
  name: 'oidc',
  about: 'Lets in visitors who logged in with an OpenID Connect provider.',
  at: { route: form },
  needs: () => 'http',
  secrets: ['client_secret'],
  accept: (config, { at }) => {
    // The form was checked before, so the value has its shape.
    const { issuer, client_id, client_secret, scopes } = config as Static<typeof form>
    if (config.enabled) requireAll(at, { issuer, client_id, client_secret })
    if (issuer !== '') checkIssuer(`${at}issuer`, issuer)
    for (const [i, scope] of scopes.entries()) checkScope(`${at}scopes[${i}]`, scope)
    return config
  },
}

/** D38: a disabled module may be stored bare. */
function requireAll(at: string, needed: Readonly<Record<string, string>>): void {
  const missing = Object.keys(needed).filter((name) => needed[name] === '')
  const [first] = missing
  if (first === undefined) return
  const names = missing.map((name) => `\`${at}${name}\``).join(', ')
  throw new BadValue(`${at}${first}`, 'required', `an enabled \`oidc\` module needs ${names}; set it, or disable it`)
}

/** The messages do not repeat the URL: it may hold a password, which is one of the reasons to refuse it. */
function checkIssuer(field: string, issuer: string): void {
  const bad = (must: string): BadValue => new BadValue(field, 'value', `\`${field}\` must ${must}`)
  // By hand first: the URL parser forgives spaces, backslashes and missing slashes, and hides an empty `?`, `#` or `@`.
  if (/[?#]/.test(issuer)) throw bad('have no query and no fragment')
  if (/^[^/]*\/\/[^/]*@/.test(issuer)) throw bad('have no user name or password')
  const url = /^https?:\/\/[^\s\\]+$/i.test(issuer) ? URL.parse(issuer) : null
  if (url === null) throw bad('be a URL such as `https://accounts.example.com`')
  if (url.protocol !== 'https:' && !isLoopback(url.hostname)) {
    throw bad('start with `https://`; `http://` is allowed only for loopback hosts such as `localhost`')
  }
}

/** `hostname` as the URL parser writes it: lower case, IPv6 in brackets, IPv4 as four decimal numbers. */
function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || (isIPv4(hostname) && hostname.startsWith('127.'))
}

/** RFC 6749 §3.3: scope-token. */
function checkScope(field: string, scope: string): void {
  if (/^[\x21\x23-\x5b\x5d-\x7e]+$/.test(scope)) return
  throw new BadValue(
    field,
    'value',
    `\`${field}\` must be one scope of ASCII characters without spaces, quotes or backslashes; give each scope its own entry`,
  )
}
