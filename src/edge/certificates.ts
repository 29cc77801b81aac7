/** Which certificate is shown for which name: an uploaded one, else one of our own authority, made on first use. */
import { createHash, X509Certificate } from 'node:crypto'
import type { Clock } from '../lib/clock.ts'
import type { IssuedCertificate } from '../lib/x509/certificate-authority.ts'
import { DeepNames } from './deep-names.ts'

/** A certificate with its chain, and its key, both in PEM. */
export interface CertificatePair {
  readonly cert: string
  readonly key: string
}

export interface ServerCertificate extends CertificatePair {
  /** Equal for equal pairs: what was prepared for one serves for the other. */
  readonly id: string
}

export interface CertificatesOptions {
  readonly authority: { issue(names: readonly string[]): IssuedCertificate }
  readonly now?: Clock
  readonly maxIssued?: number
}

interface Issued {
  readonly certificate: ServerCertificate
  readonly renewAt: number
  askedAt: number
}

/** How many certificates of our own are kept; the one not asked for longest goes first, and is made anew when needed. */
const MAX_ISSUED = 4096

const DAY_MS = 86_400_000

/** How long before its end a certificate of our own is made anew, in milliseconds. */
const RENEW_MS = 30 * DAY_MS

export class Certificates {
  readonly #authority: CertificatesOptions['authority']
  readonly #now: Clock
  readonly #maxIssued: number
  /** By their names, the one least recently asked for first. */
  readonly #issued = new Map<string, Issued>()
  readonly #deepNames: DeepNames
  #uploaded: ReadonlyMap<string, CertificatePair> = new Map()
  readonly #known = new WeakMap<CertificatePair, ServerCertificate>()
  readonly #ends = new WeakMap<CertificatePair, number>()

  constructor({ authority, now = Date.now, maxIssued = MAX_ISSUED }: CertificatesOptions) {
    this.#authority = authority
    this.#now = now
    this.#maxIssued = maxIssued
    this.#deepNames = new DeepNames(now)
  }

  /**
   * From now on these are the uploaded ones, by exact name or `*.…`, normalised. The map must not change afterwards;
   * pairs that are the same objects as before are not read again.
   */
  replace(uploaded: ReadonlyMap<string, CertificatePair>): void {
    this.#uploaded = uploaded
  }

  /**
   * For a normalised name that a visitor asked for; throws only when the authority does. Names that an edge serves by a
   * `wildcard` share one of our own with their siblings, since visitors can think of any number of them; and those deep
   * below it are shown that of the wildcard itself where too many have one of their own.
   */
  find(name: string, { wildcard }: { readonly wildcard?: string | undefined } = {}): ServerCertificate {
    const uploaded = this.#uploadedFor(name)
    if (uploaded || wildcard === undefined) return uploaded ?? this.#issuedFor([name])
    const parent = wildcardOver(name)
    if (parent === wildcard || this.#deepNames.admits(wildcard, parent)) return this.#issuedFor([parent])
    return this.#uploadedFor(wildcard) ?? this.#issuedFor([wildcard])
  }

  /**
   * For a name that nobody serves: what is uploaded for it when it is `domain` or right below it, else for `domain`, else
   * one of our own for all of these together, since strangers can think of any number of names.
   */
  findDefault(name: string, { domain }: { readonly domain: string }): ServerCertificate {
    const below = `*.${domain}`
    return this.#uploadedFor(wildcardOver(name) === below ? name : domain) ?? this.#issuedFor([domain, below])
  }

  /** A pair that comes from elsewhere, such as with an endpoint. */
  identify(pair: CertificatePair): ServerCertificate {
    let known = this.#known.get(pair)
    if (!known) {
      known = identified(pair)
      this.#known.set(pair, known)
    }
    return known
  }

  /** Drops those of our own for a single name that nobody serves any more, and that was not asked for since `before`. */
  dropGone(isServed: (name: string) => boolean, before: number): void {
    for (const [name, { askedAt }] of this.#issued) {
      const isSingle = !name.includes(' ') && !name.startsWith('*.')
      if (isSingle && askedAt < before && !isServed(name)) this.#issued.delete(name)
    }
  }

  /** When each uploaded certificate ends, in milliseconds since 1970, by name; those that cannot be read are left out. */
  *expiries(): Generator<readonly [name: string, notAfter: number]> {
    for (const [name, pair] of this.#uploaded) {
      const end = this.#ends.get(pair) ?? readEnd(pair)
      this.#ends.set(pair, end)
      if (!Number.isNaN(end)) yield [name, end]
    }
  }

  /** When the first of them ends; undefined without any. */
  get firstExpiry(): number | undefined {
    let first: number | undefined
    for (const [, end] of this.expiries()) first = Math.min(first ?? end, end)
    return first
  }

  #uploadedFor(name: string): ServerCertificate | undefined {
    const uploaded = this.#uploaded.get(name) ?? this.#uploaded.get(wildcardOver(name))
    return uploaded && this.identify(uploaded)
  }

  #issuedFor(names: readonly string[]): ServerCertificate {
    const now = this.#now()
    const key = names.join(' ')
    const known = this.#issued.get(key)
    const entry = known && known.renewAt > now ? known : this.#issue(names, now)
    entry.askedAt = now
    this.#issued.delete(key)
    this.#issued.set(key, entry)
    if (this.#issued.size > this.#maxIssued) {
      const [oldest = key] = this.#issued.keys()
      this.#issued.delete(oldest)
    }
    return entry.certificate
  }

  #issue(names: readonly string[], now: number): Issued {
    const issued = this.#authority.issue(names)
    // An authority near its own end issues nothing that lasts; one a day is enough then.
    return {
      certificate: identified(issued),
      renewAt: Math.max(issued.notAfter - RENEW_MS, now + DAY_MS),
      askedAt: now,
    }
  }
}

/** RFC 6125 §6.4.3: a wildcard of a certificate stands for one label, unlike that of an edge. */
function wildcardOver(name: string): string {
  return `*${name.slice(name.indexOf('.'))}`
}

function identified({ cert, key }: CertificatePair): ServerCertificate {
  const id = createHash('sha256').update(cert).update('\0').update(key).digest('base64url')
  return { id, cert, key }
}

function readEnd({ cert }: CertificatePair): number {
  try {
    return new X509Certificate(cert).validToDate.getTime()
  } catch {
    return Number.NaN
  }
}
