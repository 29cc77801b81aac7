/**
 * Sign-ins to the dashboard: an API key, sealed in a cookie that is valid only on the page's own requests.
 *
 * A cookie goes to every port of its host, where anybody may serve. So it is not enough: the page, whose storage belongs to
 * its own origin, keeps a secret that the cookie has a digest of, and sends it in a header (D105).
 */
import { createHash, randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import type { Clock } from '../../lib/clock.ts'
import { readCookies } from '../../lib/http/cookies.ts'
import { isSameText } from '../../lib/secrets/constant-time.ts'
import { type Sealer, SealFault } from '../../lib/secrets/seal.ts'
import { type EndedPageSessions, LIFETIME_MS, type PageSession } from '../records/ended-page-sessions.ts'
import { schemeOf } from './host.ts'

/** The header with the secret of the page; `page-state.ts` sends it. */
const SECRET = 'postern-page'

/** Longest cookie that is opened, in characters; longer ones are not ours. */
const MAX_COOKIE = 1024

interface PageSessionOptions {
  readonly sealer: Pick<Sealer, 'seal' | 'open'>
  readonly now: Clock
  /** Sessions that were signed out, at this node or another. */
  readonly ended: Pick<EndedPageSessions, 'add' | 'has'>
  /** How callers reach the API; null when only addresses and `localhost` do. */
  readonly apiUrl: () => string | null
}

export class PageSessions {
  readonly #options: PageSessionOptions

  constructor(options: PageSessionOptions) {
    this.#options = options
  }

  /**
   * The origin of the page that made the request; undefined unless it is ours.
   *
   * Browsers send a cookie by themselves, even on requests that a page of another site makes. So the cookie is valid only
   * when the Host is ours and the request comes from a page of the same origin. Both `Sec-Fetch-Site` and `Origin` must say
   * so; only reads may lack `Origin`. Otherwise the request counts as one without a key.
   */
  ownPage(request: IncomingMessage): string | undefined {
    const origin = ownOrigin(request, this.#options.apiUrl())
    return origin !== undefined && isSentBy(request, origin) ? origin : undefined
  }

  /** The session that a request of our page carries, unless it was signed out. */
  async sessionOf(request: IncomingMessage): Promise<PageSession | undefined> {
    const session = this.#carriedBy(request)
    return session && !(await this.#options.ended.has(session)) ? session : undefined
  }

  #carriedBy(request: IncomingMessage): PageSession | undefined {
    const origin = this.ownPage(request)
    if (origin === undefined) return undefined
    const wanted = cookieName(origin)
    const cookies = readCookies({ all: (name) => request.headersDistinct[name] ?? [] }, (name) => name === wanted)
    const [cookie, another] = cookies
    // If there are two, somebody else set one of them.
    if (!cookie || another || cookie[1].length > MAX_COOKIE) return undefined
    const session = this.#opened(cookie[1], origin)
    const [secret, second] = request.headersDistinct[SECRET] ?? []
    if (!session || secret === undefined || second !== undefined) return undefined
    return isSameText(digestOf(secret), session.id) ? session : undefined
  }

  /** The header that signs in a browser at `origin`, and the secret for its page. */
  begin(key: string, origin: string): { readonly cookie: string; readonly secret: string; readonly until: number } {
    const until = this.#options.now() + LIFETIME_MS
    const secret = randomBytes(32).toString('base64url')
    const sealed = this.#options.sealer.seal(`${until} ${key} ${digestOf(secret)}`, boundTo(origin))
    return { cookie: setCookie(origin, sealed, LIFETIME_MS / 1000), secret, until }
  }

  /** Ends the session that a request of the page at `origin` carries, at all nodes; returns the header that signs out. */
  async end(request: IncomingMessage, origin: string): Promise<string> {
    const session = this.#carriedBy(request)
    if (session) await this.#options.ended.add(session)
    return setCookie(origin, '', 0)
  }

  #opened(sealed: string, origin: string): PageSession | undefined {
    try {
      const [until, key, id] = this.#options.sealer.open(sealed, boundTo(origin)).split(' ')
      // Those of earlier versions have no id.
      if (key === undefined || id === undefined || !(Number(until) > this.#options.now())) return undefined
      return { key, id, until: Number(until) }
    } catch (error) {
      if (error instanceof SealFault) return undefined
      throw error
    }
  }
}

/**
 * The origin that the Host of a request names; undefined when it is not ours.
 *
 * Ours are the name in `--api-url`, `localhost`, and any IP address. Anybody may point another name at this server (DNS
 * rebinding), but not an address. `--domain` is not among them: edges answer there too, and browsers would send them
 * the cookie.
 */
function ownOrigin(request: IncomingMessage, apiUrl: string | null): string | undefined {
  const [host, another] = request.headersDistinct.host ?? []
  if (host === undefined || another !== undefined) return undefined
  if (apiUrl !== null) {
    const { protocol, origin } = new URL(apiUrl)
    if (URL.parse(`${protocol}//${host}`)?.origin === origin) return origin
  }
  const address = URL.parse(`${schemeOf(request)}://${host}`)
  if (!address) return undefined
  const { hostname, origin } = address
  return hostname === 'localhost' || isIP(hostname.replace(/^\[(.*)\]$/, '$1')) !== 0 ? origin : undefined
}

/** Whether a page at `origin` made the request, rather than another page, a link or the address bar. */
function isSentBy({ method, headersDistinct }: IncomingMessage, origin: string): boolean {
  const { origin: origins = [], 'sec-fetch-site': sites = [] } = headersDistinct
  if (sites.length !== 1 || sites[0] !== 'same-origin') return false
  // Browsers leave `Origin` out of reads from their own origin.
  if (origins.length === 0) return method === 'GET' || method === 'HEAD'
  return origins.length === 1 && origins[0] === origin
}

/** Browsers take a `__Host-` cookie only over https. Otherwise the port distinguishes servers on one machine. */
function cookieName(origin: string): string {
  const { protocol, port } = new URL(origin)
  return protocol === 'https:' ? '__Host-postern-page' : `postern-page-${port === '' ? '80' : port}`
}

function setCookie(origin: string, value: string, seconds: number): string {
  const secure = origin.startsWith('https:') ? '; Secure' : ''
  return `${cookieName(origin)}=${value}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${seconds}${secure}`
}

function digestOf(secret: string): string {
  return createHash('sha256').update(secret).digest('hex')
}

/** Binds a cookie to its origin: it is invalid at another. */
function boundTo(origin: string): string {
  return `page session at ${origin}`
}
