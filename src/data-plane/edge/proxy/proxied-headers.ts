/** Which headers stop at the edge, in either direction, and which ones the edge adds. */
import { withoutCookies } from '../../../lib/http/cookies.ts'
import { HeaderList } from '../../../lib/http/header-list.ts'
import { type HeaderName, headerName } from '../../../lib/http/header-name.ts'
import type { Peer, RequestContext } from '../../../modules/phases.ts'
import { hopByHop, isTrailer } from '../trailers.ts'

/**
 * Removes, in place, headers that a visitor must not send to an upstream. Returns whether the visitor described its own visit
 * as only a trusted proxy may.
 */
export function stripRequest(headers: HeaderList, { isThroughHop }: Pick<Peer, 'isThroughHop'>): boolean {
  isVisitDescribed = false
  strip(headers, isThroughHop ? isStrippedFromHop : isStrippedFromRequest)
  headers.change('cookie', withoutPage)
  return isVisitDescribed
}

/** Set while the headers of one request are stripped; a closure for each request would cost more. */
let isVisitDescribed = false

/** Removes, in place, headers that an upstream must not send to a visitor. */
export function stripResponse(headers: HeaderList): void {
  strip(headers, isStrippedFromResponse)
}

/** Removes what a service must not send, and restores the public host in redirects. */
export function cleanResponse(
  headers: HeaderList,
  origin: PublicOrigin & { readonly replacedHost: string | undefined },
): void {
  stripResponse(headers)
  if (origin.replacedHost === undefined) return
  const location = headers.get('location')
  if (location !== undefined) headers.set('Location', publicLocation(location, origin.replacedHost, origin))
}

/**
 * Removes from trailers, in either direction, what cannot be a trailer and what `removed` names; undefined when none is
 * left.
 */
export function stripTrailers(
  trailers: HeaderList | undefined,
  removed: ReadonlySet<string> = noNames,
): HeaderList | undefined {
  trailers?.removeWhere((name) => isStrippedFromTrailers(name) || !isTrailer(name.key) || removed.has(name.key))
  return trailers && trailers.size > 0 ? trailers : undefined
}

/** RFC 9110 §7.6.1: names in `Connection` are removed from trailers too. Call it before the headers are stripped. */
export function removedAsTrailers(headers: HeaderList, removed: ReadonlySet<string> = noNames): ReadonlySet<string> {
  const named = namedByConnection(headers)
  return named === undefined ? removed : new Set([...named, ...removed])
}

const noNames: ReadonlySet<string> = new Set()

function strip(headers: HeaderList, isStripped: (name: HeaderName) => boolean): void {
  const named = namedByConnection(headers)
  headers.removeWhere(named === undefined ? isStripped : (name) => isStripped(name) || named.has(name.key))
}

/** Headers sent upstream: `Host` first, as most clients do, then the visitor's, then those that describe the visit. */
export function forwardedHeaders({ headers, authority, peer, scheme }: RequestContext): HeaderList {
  const outgoing = new HeaderList()
  // Safe to send, since it was parsed as a host.
  outgoing.addChecked(host, authority)
  outgoing.addAll(headers)
  outgoing.change('cookie', withoutOurs)
  append(outgoing, forwardedFor, peer.ip)
  append(outgoing, forwardedProto, scheme)
  if (!outgoing.has('x-forwarded-host')) outgoing.addChecked(forwardedHost, authority)
  return outgoing
}

const host = headerName('Host')
const forwardedFor = headerName('X-Forwarded-For')
const forwardedProto = headerName('X-Forwarded-Proto')
const forwardedHost = headerName('X-Forwarded-Host')

/** joined into one line, so that the last value is ours however an upstream treats several lines. */
function append(headers: HeaderList, name: HeaderName, value: string): void {
  if (!headers.has(name.key)) headers.addChecked(name, value)
  else headers.set(name.spelling, [...headers.all(name.key), value].join(', '))
}

/** Facts about a name, computed once and used for every message. */
const EXAMINED = 1
const HOP_BY_HOP = 2
const OURS = 4
const UNDERSCORED = 8
const ERROR_CODE = 16
const ABOUT_VISIT = 32
const FORWARDED_FOR = 64

/** D107: services believe these of their proxy. `X-Forwarded-For` is not among them: ours comes last in it. */
const aboutVisit: ReadonlySet<string> = new Set([
  'forwarded',
  'x-forwarded-host',
  'x-forwarded-port',
  'x-forwarded-prefix',
  'x-forwarded-proto',
  'x-forwarded-scheme',
  'x-forwarded-server',
  'x-forwarded-ssl',
  'x-original-host',
  'x-original-url',
  'x-real-ip',
  'x-rewrite-url',
])

function marksOf(name: HeaderName): number {
  if (name.marks === 0) {
    const { key } = name
    name.marks =
      EXAMINED |
      (hopByHop.has(key) ? HOP_BY_HOP : 0) |
      (isOurs(key) ? OURS : 0) |
      (key.includes('_') ? UNDERSCORED : 0) |
      (key === 'ngrok-error-code' ? ERROR_CODE : 0) |
      (aboutVisit.has(key) ? ABOUT_VISIT : 0) |
      (key === forwardedFor.key ? FORWARDED_FOR : 0)
  }
  return name.marks
}

/**
 * D42b: services trust these because only the edge sets them. This covers every separator after our name, since some
 * servers treat all characters but letters and digits alike.
 */
function isOurs(key: string): boolean {
  return key.startsWith('postern') && key.length > 7 && !/[a-z0-9]/.test(key.charAt(7))
}

/** D106: nothing behind an edge may see who is signed in to the dashboard, not even a rule. */
function withoutPage(cookies: string): string {
  return cookies.includes('postern') ? withoutCookies(cookies, isOfPage) : cookies
}

/** D106: what goes to a service has none of ours, logins included, which modules read until then. */
function withoutOurs(cookies: string): string {
  return cookies.includes('postern') ? withoutCookies(cookies, isOurCookie) : cookies
}

const isOfPage = (name: string): boolean => /^(?:__Host-)?postern-page(?![a-z0-9])/.test(name)

/** As with headers, whatever separator follows our name. Other names of logins are hidden by their edges. */
const isOurCookie = (name: string): boolean => /^(?:__(?:Host|Secure)-)?postern[^a-z0-9]/.test(name)

/** Underscores: some servers read `_` as `-`, so that one header could pass for another. */
function isStrippedFromHop(name: HeaderName): boolean {
  return (marksOf(name) & (HOP_BY_HOP | OURS | UNDERSCORED)) !== 0
}

function isStrippedFromRequest(name: HeaderName): boolean {
  const found = marksOf(name) & (HOP_BY_HOP | OURS | UNDERSCORED | ABOUT_VISIT | FORWARDED_FOR)
  if (found === 0) return false
  if ((found & (ABOUT_VISIT | FORWARDED_FOR)) !== 0) isVisitDescribed = true
  return found !== FORWARDED_FOR
}

function isStrippedFromTrailers(name: HeaderName): boolean {
  return (marksOf(name) & (HOP_BY_HOP | OURS | UNDERSCORED | ERROR_CODE)) !== 0
}

function isStrippedFromResponse(name: HeaderName): boolean {
  return (marksOf(name) & (HOP_BY_HOP | OURS | ERROR_CODE)) !== 0
}

/** The usual values of `Connection`, which name no header to remove. */
const usualOptions = ['keep-alive', 'close', 'Upgrade', 'upgrade', 'Keep-Alive']

function namedByConnection(headers: HeaderList): ReadonlySet<string> | undefined {
  const first = headers.get('connection')
  if (first === undefined || (usualOptions.includes(first) && headers.count('connection') === 1)) return undefined
  const values = headers.all('connection')
  return new Set(values.flatMap((value) => value.split(',')).map((option) => option.trim().toLowerCase()))
}

const absolute = /^(?:(https?):)?\/\/([^/?#]*)(.*)$/is

interface PublicOrigin {
  readonly scheme: 'http' | 'https'
  /** `Host` as the visitor sent it. */
  readonly authority: string
}

/**
 * D37: a redirect to the rewritten host becomes one to the host that the visitor asked for. `location` as the visitor should
 * see it; unchanged when it points elsewhere.
 */
export function publicLocation(location: string, replacedHost: string, { scheme, authority }: PublicOrigin): string {
  const [whole, sentScheme, host = '', rest = ''] = absolute.exec(location) ?? []
  if (whole === undefined || withoutUsualPort(host) !== withoutUsualPort(replacedHost)) return location
  return sentScheme === undefined ? `//${authority}${rest}` : `${scheme}://${authority}${rest}`
}

function withoutUsualPort(host: string): string {
  return host.toLowerCase().replace(/:(?:80|443)?$/, '')
}
