/** The cookies of logins: which are ours, what they hold, and how they are set and kept from services. */
import type { HeaderList } from '../../lib/header-list.ts'

/** D39 */
const DEFAULT_PREFIX = 'postern.'

export interface CookieNames {
  readonly session: string
  /** Of the cookie of an attempt, before the id of the attempt. */
  readonly nonce: string
}

export function cookieNames(prefix: string): CookieNames {
  const before = prefix === '' ? DEFAULT_PREFIX : prefix
  return { session: `${before}session`, nonce: `${before}nonce.` }
}

/** The cookies of the request whose name is wanted, in the order in which they came; over HTTP/2 in several headers. */
export function readCookies(headers: HeaderList, isWanted: (name: string) => boolean): (readonly [string, string])[] {
  const found: (readonly [string, string])[] = []
  for (const header of headers.all('cookie')) {
    for (const pair of header.split(';')) {
      const [name, value] = nameAndValue(pair)
      if (isWanted(name)) found.push([name, value])
    }
  }
  return found
}

/** step 9: takes the cookies of logins out of what goes upstream; all others stay as they were sent. */
export function removeOwnCookies(headers: HeaderList, { session, nonce }: CookieNames): void {
  const isOwn = (pair: string): boolean => {
    const [name] = nameAndValue(pair)
    return name === session || name.startsWith(nonce)
  }
  const sent = headers.all('cookie')
  if (!sent.some((header) => header.split(';').some(isOwn))) return
  headers.remove('cookie')
  for (const header of sent) {
    const left = header.split(';').filter((pair) => !isOwn(pair))
    if (left.length > 0) headers.add('Cookie', left.join(';').trim())
  }
}

function nameAndValue(pair: string): readonly [string, string] {
  const equals = pair.indexOf('=')
  return equals < 0 ? ['', pair.trim()] : [pair.slice(0, equals).trim(), pair.slice(equals + 1).trim()]
}

/** For this host alone, since no domain is named; `maxAgeSeconds` undefined: until the browser is closed. */
export function setCookie(name: string, value: string, maxAgeSeconds: number | undefined): readonly [string, string] {
  const age = maxAgeSeconds === undefined ? '' : `; Max-Age=${maxAgeSeconds}`
  return ['Set-Cookie', `${name}=${value}; Path=/; HttpOnly; Secure; SameSite=Lax${age}`]
}

export function expireCookie(name: string): readonly [string, string] {
  return setCookie(name, '', 0)
}
