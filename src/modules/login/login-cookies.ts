/** The cookies of logins: their names, how they are set, and which are hidden from services. */

/** D39 */
const DEFAULT_PREFIX = 'postern.'

/**
 * RFC 6265bis §4.1.3.2: browsers accept a cookie with this prefix from this very host only. Without it, any other host of
 * the same domain could log a visitor in here as somebody else, by planting a session or an attempt.
 */
const HOST_ONLY = '__Host-'

export function cookieNames(prefix: string) {
  const before = HOST_ONLY + (prefix === '' ? DEFAULT_PREFIX : prefix)
  // The id of an attempt follows the name of its cookie.
  return { session: `${before}session`, nonce: `${before}nonce.` }
}

/** The cookies that no upstream may see, in the form of `hidesCookies`. */
export function hiddenCookies({ session, nonce }: ReturnType<typeof cookieNames>): readonly string[] {
  return [session, `${nonce}*`]
}

/** A cookie for this host only, since no domain is named. `maxAgeSeconds` undefined: until the browser is closed. */
export function setCookie(name: string, value: string, maxAgeSeconds: number | undefined): readonly [string, string] {
  const age = maxAgeSeconds === undefined ? '' : `; Max-Age=${maxAgeSeconds}`
  return ['Set-Cookie', `${name}=${value}; Path=/; HttpOnly; Secure; SameSite=Lax${age}`]
}

export function expireCookie(name: string): readonly [string, string] {
  return setCookie(name, '', 0)
}
