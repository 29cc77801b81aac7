/** An authority that issues certificates over ACME (RFC 8555): the ACME library, with its answers checked. */
import type { Clock } from '../../lib/clock.ts'
import { type Fetch, FetchFault, outboundFetch } from '../../lib/http/outbound-fetch.ts'
import { fieldsOf, problemFault, readProblem, readRetryAfter } from './acme-problem.ts'
import { findListed } from './listed-orders.ts'
import { AcmeFault } from './order-fault.ts'
import { type RenewalWindow, readRenewalWindow, renewalId } from './renewal-info.ts'

/** The fields of an order that are used here. */
export interface AcmeOrder {
  readonly url: string
  readonly status: 'pending' | 'ready' | 'processing' | 'valid' | 'invalid'
  readonly authorizations: readonly string[]
  readonly finalize: string
  readonly certificate: string
  readonly problem: AcmeFault | undefined
}

export type ChallengeKind = 'http-01' | 'tls-alpn-01' | 'dns-01'

export interface AcmeChallenge {
  readonly kind: ChallengeKind
  readonly url: string
  readonly token: string
  /** The response that the authority expects to find. */
  readonly answer: string
}

export interface AcmeAuthorityOptions {
  readonly directory: string
  readonly accountKey: string
  /** Empty when there is no account yet. */
  readonly accountUrl: string
  readonly email: string
  readonly binding: { readonly keyId: string; readonly key: string } | undefined
  /** Certificates to trust, in PEM, instead of the usual ones. */
  readonly ca: string | undefined
  readonly now: Clock
  readonly version: string
}

/** How long a request may take, in milliseconds: some authorities are slow with orders. */
const REQUEST_MS = 20_000

/** The largest response, in bytes: a chain of ten certificates is smaller. */
const MAX_BYTES = 256 * 1024

/** How often a nonce may be refused before a request counts as failed. */
const NONCE_TRIES = 20

export type AcmeAuthority = Awaited<ReturnType<typeof openAuthorityAt>>

/** The library's HTTP client, as far as it is used or replaced here. */
interface LibraryHttp {
  signedRequest(url: string, payload: null, options: { readonly kid: string }): Promise<LibraryAnswer>
  request(url: string, method: string, options?: { readonly data?: unknown }): Promise<LibraryAnswer>
  getDirectory(): Promise<unknown>
  maxBadNonceRetries: number
}

interface LibraryAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly data: unknown
}

/**
 * Opens the authority for one account, which is created if there is none. The library's types do not leave this file: it
 * passes on unchecked what the authority sent, so everything that it returns is checked here.
 */
export async function openAuthorityAt(options: AcmeAuthorityOptions) {
  const { directory, accountKey, accountUrl, email, binding, ca, now, version } = options
  // Loaded on first use: most servers order no certificates.
  const { Client, crypto } = await import('acme-client')
  const fetch = outboundFetch({
    // The operator chose the directory, which may be on a private network.
    mayReach: () => true,
    longestMs: REQUEST_MS,
    ...(ca !== undefined && { ca: [ca] }),
  })
  const client = new Client({
    directoryUrl: directory,
    accountKey,
    ...(accountUrl !== '' && { accountUrl }),
    ...(binding && { externalAccountBinding: { kid: binding.keyId, hmacKey: binding.key } }),
  })
  // The library's HTTP client has no limits on time and size, and its settings are global. So its method `http.request` is
  // replaced by ours; a test checks that this works.
  const { http } = client as unknown as { readonly http: LibraryHttp }
  http.maxBadNonceRetries = NONCE_TRIES
  http.request = (url, method, { data } = {}) => request(fetch, { url, method, data, now, version })
  const of = async <T>(asked: Promise<T>): Promise<T> => {
    try {
      return await asked
    } catch (cause) {
      if (cause instanceof AcmeFault) throw cause
      const why = cause instanceof Error ? cause.message : String(cause)
      throw new AcmeFault('AUTHORITY_UNAVAILABLE', why, { cause, isUnsure: true })
    }
  }

  /** The URL of the account, which is created if there is none. An existing account of the key is found again. */
  const account = async (): Promise<string> => {
    const contact = email === '' ? [] : [`mailto:${email}`]
    try {
      await of(client.createAccount({ termsOfServiceAgreed: true, contact }))
    } catch (cause) {
      const isOurs = cause instanceof AcmeFault && cause.code !== 'AUTHORITY_UNAVAILABLE'
      throw isOurs ? new AcmeFault('ACME_ACCOUNT_REFUSED', cause.message, { cause }) : cause
    }
    return client.getAccountUrl()
  }

  return {
    account,
    /** Begins an order for one name; `replaces` names the certificate that it replaces (RFC 9773 §5). */
    async begin(name: string, replaces?: string): Promise<AcmeOrder> {
      const order = { identifiers: [{ type: 'dns', value: name }], ...(replaces !== undefined && { replaces }) }
      return readOrder(await of(client.createOrder(order)))
    },
    async order(url: string): Promise<AcmeOrder> {
      return readOrder(await of(client.getOrder({ url } as Parameters<typeof client.getOrder>[0]))) // it reads the URL alone
    },
    /** An order for one name that was begun and not finalized, if the authority lists the orders of an account. */
    async unfinished(name: string): Promise<AcmeOrder | undefined> {
      const kid = client.getAccountUrl()
      const found = await findListed(kid, {
        ask: (url) => of(http.signedRequest(url, null, { kid })),
        isSought: ({ status, identifiers }) => isBegun(status) && isFor(identifiers, name),
      })
      return found && readOrder({ ...fieldsOf(found.order), url: found.url })
    },
    async authorizations({ authorizations }: AcmeOrder) {
      const asked = { authorizations } as Parameters<typeof client.getAuthorizations>[0] // it reads these alone
      const found: unknown[] = await of(client.getAuthorizations(asked))
      return Promise.all(
        found.map((each) =>
          readAuthorization(each, (challenge) =>
            client.getChallengeKeyAuthorization(challenge as Parameters<typeof client.getChallengeKeyAuthorization>[0]),
          ),
        ),
      )
    },
    /** Tells the authority that it can check the response to a challenge. */
    async ready({ url }: AcmeChallenge): Promise<void> {
      await of(client.completeChallenge({ url } as Parameters<typeof client.completeChallenge>[0])) // it reads the URL alone
    },
    async finalize({ url, finalize }: AcmeOrder, name: string, privateKey: string): Promise<AcmeOrder> {
      const [, csr] = await crypto.createCsr({ altNames: [name] }, privateKey)
      const order = { url, finalize } as Parameters<typeof client.finalizeOrder>[0] // it reads these alone
      return readOrder(await of(client.finalizeOrder(order, csr)))
    },
    /** The certificate with its chain, in PEM, as it was sent. */
    async download({ url, status, certificate }: AcmeOrder): Promise<string> {
      const order = { url, status, certificate } as Parameters<typeof client.getCertificate>[0] // it reads these alone
      const sent: unknown = await of(client.getCertificate(order))
      if (typeof sent !== 'string') throw unreadable('a certificate that is not text')
      return sent
    },
    /** When the authority wants a certificate renewed; undefined when it does not say. */
    async renewalWindow(certificate: string, leastAskMs: number): Promise<RenewalWindow | undefined> {
      const listed = await of(http.getDirectory())
      const base = fieldsOf(listed).renewalInfo
      const id = renewalId(certificate)
      if (typeof base !== 'string' || id === undefined) return undefined
      const url = `${base.replace(/\/$/, '')}/${id}`
      const answer = await request(fetch, { url, method: 'get', data: undefined, now, version })
      const retryAfterMs = readRetryAfter(answer.headers['retry-after'] ?? null, now())
      return readRenewalWindow(answer.data, { retryAfterMs, leastAskMs })
    },
  }
}

/** One request, in the form of the library. Errors become faults, except for a refused nonce, which the library retries. */
async function request(
  fetch: Fetch,
  { url, method, data, now, version }: { url: string; method: string; data: unknown; now: Clock; version: string },
): Promise<LibraryAnswer> {
  const answer = await fetch(url, {
    method: method.toUpperCase(),
    headers: {
      'user-agent': `postern/${version}`,
      ...(data !== undefined && { 'content-type': 'application/jose+json' }),
    },
    ...(data !== undefined && { body: JSON.stringify(data) }),
    maxBytes: MAX_BYTES,
  }).catch((cause: unknown) => {
    if (!(cause instanceof FetchFault)) throw cause
    throw new AcmeFault('AUTHORITY_UNAVAILABLE', cause.message, { cause, isUnsure: data !== undefined })
  })
  const value = readBody(answer.body, answer.headers.get('content-type') ?? '')
  if (answer.status >= 400 && readProblem(value).type !== 'badNonce') {
    const retryAfterMs = readRetryAfter(answer.headers.get('retry-after'), now())
    throw problemFault(answer.status, value, { retryAfterMs, isSent: data !== undefined })
  }
  return { status: answer.status, headers: Object.fromEntries(answer.headers), data: value }
}

function readBody(body: Buffer, type: string): unknown {
  const text = body.toString('utf8')
  if (!/^application\/(problem\+)?json\b/i.test(type)) return text
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

const statuses: readonly string[] = ['pending', 'ready', 'processing', 'valid', 'invalid']

function readOrder(value: unknown): AcmeOrder {
  const { url, status, authorizations, finalize, certificate, error } = fieldsOf(value)
  if (typeof url !== 'string' || typeof status !== 'string' || !statuses.includes(status)) throw unreadable('an order')
  const urls = Array.isArray(authorizations) ? authorizations.filter((each) => typeof each === 'string') : []
  return {
    url,
    status: status as AcmeOrder['status'], // looked up just above
    // We order one name at a time.
    authorizations: urls.slice(0, 1),
    finalize: typeof finalize === 'string' ? finalize : '',
    certificate: typeof certificate === 'string' ? certificate : '',
    problem: error === undefined || error === null ? undefined : problemFault(0, error),
  }
}

function isBegun(status: unknown): boolean {
  return status === 'pending' || status === 'ready'
}

function isFor(identifiers: unknown, name: string): boolean {
  const [only, ...more]: unknown[] = Array.isArray(identifiers) ? identifiers : []
  return more.length === 0 && fieldsOf(only).type === 'dns' && fieldsOf(only).value === name
}

const kinds: readonly string[] = ['http-01', 'tls-alpn-01', 'dns-01']

/** RFC 8555 §8.1: base64url with at least 128 bits. No authority sends longer ones than this. */
const TOKEN = /^[A-Za-z0-9_-]{16,256}$/

/** Whether a name is proven, or how it can be proven. */
async function readAuthorization(value: unknown, answerOf: (challenge: unknown) => Promise<string>) {
  const { status, identifier, challenges } = fieldsOf(value)
  const name = fieldsOf(identifier).value
  if (typeof status !== 'string' || typeof name !== 'string') throw unreadable('an authorization')
  const all: unknown[] = Array.isArray(challenges) ? challenges : []
  const known: AcmeChallenge[] = []
  let problem: AcmeFault | undefined
  for (const each of all) {
    const { type, url, token, error } = fieldsOf(each)
    if (error !== undefined) problem = problemFault(0, error)
    if (typeof type !== 'string' || !kinds.includes(type)) continue
    if (typeof url !== 'string' || typeof token !== 'string' || !TOKEN.test(token)) throw unreadable('a challenge')
    known.push({ kind: type as ChallengeKind, url, token, answer: await answerOf(each) }) // looked up just above
  }
  return { status, name, challenges: known, problem }
}

function unreadable(what: string): AcmeFault {
  return new AcmeFault('AUTHORITY_UNAVAILABLE', `It sent ${what} that cannot be read.`, { isUnsure: true })
}
