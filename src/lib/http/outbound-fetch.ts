/** Requests that the server makes to URLs set by users (D53): bounded in time, size and redirects. */
import { lookup as resolveName } from 'node:dns'
import type { IncomingMessage } from 'node:http'
import { request as requestSecure } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import { ipBytes, ipText } from '../net/ip-bytes.ts'
import type { OutboundTarget } from '../net/outbound-rules.ts'
import { isLoopbackAddress } from '../net/public-address.ts'
import { request as requestPlain } from './node-http.ts'

/** Rejects with `FetchFault`. */
export type Fetch = (url: string | URL, request?: FetchRequest) => Promise<FetchAnswer>

export interface FetchRequest {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
  /** In milliseconds; at most `FETCH_TIMEOUT_MS`, or `longestMs` of the options. */
  readonly timeoutMs?: number
  /** Whether redirects are followed; by default only for requests without a body. */
  readonly followsRedirects?: boolean
  /** The most redirects that are followed; at most `FETCH_MAX_REDIRECTS`. */
  readonly maxRedirects?: number
  /** The longest body of an answer; at most `FETCH_MAX_BYTES`. */
  readonly maxBytes?: number
}

export interface FetchAnswer {
  readonly status: number
  readonly headers: Headers
  readonly body: Buffer
  /** The IP address that answered. */
  readonly address?: string | undefined
}

/** Why there is no answer; the message can be logged and contains nothing of the request. */
export class FetchFault extends Error {
  readonly reason: 'bad_url' | 'not_allowed' | 'unreachable' | 'timed_out' | 'too_large' | 'too_many_redirects'

  constructor(reason: FetchFault['reason'], message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'FetchFault'
    this.reason = reason
  }
}

interface OutboundOptions {
  /** Whether requests to this address are allowed; asked again for each redirect. */
  readonly mayReach: (target: OutboundTarget) => boolean
  /** Certificates of authorities, in PEM, to trust instead of Node's. */
  readonly ca?: readonly string[]
  /** The longest time for a request, in milliseconds, instead of `FETCH_TIMEOUT_MS`. */
  readonly longestMs?: number
  /** How names are resolved; for tests. */
  readonly resolve?: typeof resolveName
}

export const FETCH_TIMEOUT_MS = 5000
export const FETCH_MAX_BYTES = 1024 * 1024
export const FETCH_MAX_REDIRECTS = 3

const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

/**
 * Reaches only addresses that the operator allows. The check is on the address that is dialled, never on the name, which may
 * resolve to another address each time. Node's own `fetch` has no hook between resolving a name and connecting.
 */
export function outboundFetch(options: OutboundOptions): Fetch {
  return async (given, request = {}) => {
    const { longestMs = FETCH_TIMEOUT_MS } = options
    const { timeoutMs = longestMs, followsRedirects = request.body === undefined } = request
    const maxRedirects = Math.min(request.maxRedirects ?? FETCH_MAX_REDIRECTS, FETCH_MAX_REDIRECTS)
    const signal = AbortSignal.timeout(Math.min(timeoutMs, longestMs))
    let url = readUrl(given)
    let { headers = {} } = request
    for (let redirected = 0; ; redirected++) {
      const answer = await ask(url, { ...request, headers }, signal, options)
      const location = answer.headers.get('location')
      if (!followsRedirects || !redirects.has(answer.status) || location === null) return answer
      if (redirected === maxRedirects) {
        throw new FetchFault('too_many_redirects', `too many redirects: stopped at ${url.origin} after ${redirected}`)
      }
      const next = readUrl(location, url)
      // Headers for one server must not reach another, except `cdn-loop`, which reveals a loop to all of them.
      if (next.origin !== url.origin) headers = only('cdn-loop', headers)
      url = next
    }
  }
}

function only(name: string, headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const value = headers[name]
  return value === undefined ? {} : { [name]: value }
}

function readUrl(given: string | URL, base?: URL): URL {
  const url = URL.parse(String(given), base?.href)
  if (!url) throw new FetchFault('bad_url', 'the address is not a URL')
  if (url.username !== '' || url.password !== '') throw new FetchFault('bad_url', 'a URL must not contain a password')
  if (url.protocol === 'https:') return url
  if (url.protocol === 'http:' && isLoopbackName(hostOf(url))) return url
  throw new FetchFault('bad_url', `${url.origin} must use https; plain http is allowed to this machine only`)
}

function isLoopbackName(host: string): boolean {
  return host === 'localhost' || isLoopbackAddress(host)
}

/** The host without the brackets of IPv6. */
function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '')
}

function ask(url: URL, request: FetchRequest, signal: AbortSignal, options: OutboundOptions): Promise<FetchAnswer> {
  const { method = 'GET', headers, body } = request
  const maxBytes = Math.min(request.maxBytes ?? FETCH_MAX_BYTES, FETCH_MAX_BYTES)
  const host = hostOf(url)
  const port = Number(url.port || (url.protocol === 'https:' ? 443 : 80))
  const mayReach = (address: string): boolean => {
    const bytes = ipBytes(address)
    if (!bytes) return false
    const plain = ipText(bytes)
    if (url.protocol === 'http:' && !isLoopbackAddress(plain)) return false
    return options.mayReach({ host, address: plain, port })
  }
  const refusal = (): FetchFault =>
    new FetchFault(
      'not_allowed',
      `${url.host} resolves to an address that is not public, or to this server; \`--outbound-allow\` can allow it, except listeners of this server that are not for visitors`,
    )

  return new Promise((resolve, reject) => {
    if (isIP(host) !== 0 && !mayReach(host)) {
      reject(refusal())
      return
    }
    const lookup: LookupFunction = (name, { family, hints }, done) => {
      const resolveAll = options.resolve ?? resolveName
      resolveAll(name, { all: true, family: family === 4 || family === 6 ? family : 0, hints }, (error, found) => {
        const allowed = error ? [] : found.filter(({ address }) => mayReach(address))
        if (error) done(error, [])
        else if (allowed.length === 0) done(refusal(), [])
        else done(null, allowed)
      })
    }
    const send = url.protocol === 'https:' ? requestSecure : requestPlain
    const sent = send(url, {
      method,
      headers: { accept: '*/*', 'user-agent': 'postern', ...headers },
      agent: false,
      lookup,
      signal,
      ...(options.ca && { ca: [...options.ca] }),
    })
    const fail = (cause: Error): void => reject(faultOf(cause, url, signal))
    sent.on('error', fail)
    sent.on('response', (response) => {
      readAnswer(response, maxBytes).then(resolve, (cause: Error) => {
        sent.destroy()
        fail(cause)
      })
    })
    sent.end(body)
  })
}

async function readAnswer(response: IncomingMessage, maxBytes: number): Promise<FetchAnswer> {
  const address = response.socket.remoteAddress
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of response) {
    // Chunks are buffers, because no encoding was set.
    const piece = chunk as Buffer
    bytes += piece.length
    if (bytes > maxBytes) throw new FetchFault('too_large', `the answer is longer than ${maxBytes} bytes`)
    chunks.push(piece)
  }
  const headers = new Headers()
  for (const [name, values] of Object.entries(response.headersDistinct)) {
    for (const value of values ?? []) headers.append(name, value)
  }
  return { status: response.statusCode ?? 0, headers, body: Buffer.concat(chunks), address }
}

function faultOf(cause: Error, { host }: URL, signal: AbortSignal): FetchFault {
  if (cause instanceof FetchFault) return cause
  if (signal.aborted) return new FetchFault('timed_out', `${host} did not answer in time`)
  return new FetchFault('unreachable', `the request to ${host} failed: ${cause.message}`, { cause })
}
