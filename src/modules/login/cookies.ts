/** The cookies of logins: what they are called, how they are set, and which are kept from services. */

/** D39 */
const DEFAULT_PREFIX = 'postern.'

/**
 * RFC 6265bis §4.1.3.2: browsers take a cookie with such a name from this very host alone. Without it, any other name of
 * the same domain could log a visitor in here as somebody else, with a session or an attempt of its own.
 */
const HOST_ONLY = '__Host-'

export interface CookieNames {
  readonly session: string
  /** Of the cookie of an attempt, before the id of the attempt. */
  readonly nonce: string
}

export function cookieNames(prefix: string): CookieNames {
  const before = HOST_ONLY + (prefix === '' ? DEFAULT_PREFIX : prefix)
  return { session: `${before}session`, nonce: `${before}nonce.` }
}

/** What no upstream may see, as `hidesCookies` writes it. */
export function hiddenCookies({ session, nonce }: CookieNames): readonly string[] {
  return [session, `${nonce}*`]
}

/** For this host alone, since no domain is named; `maxAgeSeconds` undefined: until the browser is closed. */
export function setCookie(name: string, value: string, maxAgeSeconds: number | undefined): readonly [string, string] {
  const age = maxAgeSeconds === undefined ? '' : `; Max-Age=${maxAgeSeconds}`
  return ['Set-Cookie', `${name}=${value}; Path=/; HttpOnly; Secure; SameSite=Lax${age}`]
}

export function expireCookie(name: string): readonly [string, string] {
  return setCookie(name, '', 0)
}
