/** Which certificate is shown for which name: an uploaded one, else one of our own authority, made on first use. */
import { createHash, X509Certificate } from 'node:crypto'
import type { Clock } from '../../lib/clock.ts'
import type { IssuedCertificate } from '../../lib/x509/certificate-authority.ts'
import { wildcardOver } from '../../model/certificate-names.ts'
import { DeepNames } from './deep-names.ts'

/** A certificate with its chain, and its key, both in PEM. */
export interface CertificatePair {
  readonly cert: string
  readonly key: string
}

export interface ServerCertificate extends CertificatePair {
  /** Equal for equal pairs, so that a server prepared for one can be used for the other. */
  readonly id: string
  /** Equal at every data plane of the node, though each issues certificates of our own for itself. */
  readonly sharedId: string
}

interface CertificatesOptions {
  readonly authority: { issue(names: readonly string[]): IssuedCertificate }
  readonly now?: Clock
  readonly maxIssued?: number
}

interface Issued {
  readonly certificate: ServerCertificate
  readonly renewAt: number
  askedAt: number
}

/** How many certificates of our own are cached. The least recently used goes first and is issued again when needed. */
const MAX_ISSUED = 4096

const DAY_MS = 86_400_000

/** How long before it expires a certificate of our own is renewed, in milliseconds. */
const RENEW_MS = 30 * DAY_MS

/**
 * A certificate requested less than this ago, in milliseconds, is not moved to the end while there is room. A Map that changes
 * with every visitor is rebuilt all the time.
 */
const RECENT_MS = 1000

export class Certificates {
  readonly #options: Required<CertificatesOptions>
  /** By their names, least recently requested first. */
  readonly #issued = new Map<string, Issued>()
  readonly #deepNames: DeepNames
  #uploaded: ReadonlyMap<string, CertificatePair> = new Map()
  readonly #known = new WeakMap<CertificatePair, ServerCertificate>()
  readonly #ends = new WeakMap<CertificatePair, number>()

  constructor({ authority, now = Date.now, maxIssued = MAX_ISSUED }: CertificatesOptions) {
    this.#options = { authority, now, maxIssued }
    this.#deepNames = new DeepNames(now)
  }

  /**
   * Replaces the uploaded certificates, which are keyed by exact name or `*.…`, normalised. The map must not change
   * afterwards. Pairs that are the same objects as before are not parsed again.
   */
  replace(uploaded: ReadonlyMap<string, CertificatePair>): void {
    this.#uploaded = uploaded
  }

  /**
   * The certificate for a normalised name that a visitor asked for; throws only when the authority does. Names below a
   * `wildcard` of an edge share a certificate of our own with their siblings, since visitors can make up any number of
   * names. Deeper names get the certificate of the wildcard itself once too many have one of their own.
   */
  find(name: string, { wildcard }: { readonly wildcard?: string | undefined } = {}): ServerCertificate {
    const uploaded = this.findNamed(name)
    if (uploaded || wildcard === undefined) return uploaded ?? this.findOwn(name)
    const parent = wildcardOver(name)
    if (parent === wildcard || this.#deepNames.admits(wildcard, parent)) return this.findOwn(parent)
    return this.findNamed(wildcard) ?? this.findOwn(wildcard)
  }

  /**
   * The certificate for a name that is not served: uploaded for that name if it is directly below `domain`, else uploaded for
   * `domain`. Without such an upload, all names share one of our own, since strangers can make up any number of names.
   */
  findDefault(name: string, { domain }: { readonly domain: string }): ServerCertificate {
    const below = `*.${domain}`
    return this.findNamed(wildcardOver(name) === below ? name : domain) ?? this.findOwn(`${domain} ${below}`)
  }

  /** The uploaded certificate for a name, if there is one. */
  findNamed(name: string): ServerCertificate | undefined {
    const uploaded = this.#uploaded.get(name) ?? this.#uploaded.get(wildcardOver(name))
    return uploaded && this.identify(uploaded)
  }

  /** The certificate of our own authority for names that are separated by spaces, whatever others there are. */
  findOwn(names: string): ServerCertificate {
    const now = this.#options.now()
    const known = this.#issued.get(names)
    const isGood = known !== undefined && known.renewAt > now
    const hasRoom = 2 * this.#issued.size <= this.#options.maxIssued
    if (isGood && hasRoom && Math.abs(now - known.askedAt) < RECENT_MS) return known.certificate
    const entry = isGood ? known : this.#issue(names, now)
    entry.askedAt = now
    this.#issued.delete(names)
    this.#issued.set(names, entry)
    if (this.#issued.size > this.#options.maxIssued) {
      const [oldest = names] = this.#issued.keys()
      this.#issued.delete(oldest)
    }
    return entry.certificate
  }

  /** Assigns ids to a pair from elsewhere, such as from an agent. */
  identify(pair: CertificatePair): ServerCertificate {
    let known = this.#known.get(pair)
    if (!known) {
      known = identify(pair)
      this.#known.set(pair, known)
    }
    return known
  }

  /** Drops certificates of our own for single names that are no longer served and were not requested since `before`. */
  dropGone(isServed: (name: string) => boolean, before: number): void {
    for (const [name, { askedAt }] of this.#issued) {
      const isSingle = !name.includes(' ') && !name.startsWith('*.')
      if (isSingle && askedAt < before && !isServed(name)) this.#issued.delete(name)
    }
  }

  /** When each uploaded certificate expires, in milliseconds since 1970, by name; unreadable ones are left out. */
  *expiries(): Generator<readonly [name: string, notAfter: number]> {
    for (const [name, pair] of this.#uploaded) {
      const end = this.#ends.get(pair) ?? readEnd(pair)
      this.#ends.set(pair, end)
      if (!Number.isNaN(end)) yield [name, end]
    }
  }

  /** When the first uploaded certificate expires; undefined when there is none. */
  get firstExpiry(): number | undefined {
    let first: number | undefined
    for (const [, end] of this.expiries()) first = Math.min(first ?? end, end)
    return first
  }

  #issue(names: string, now: number): Issued {
    const issued = this.#options.authority.issue(names.split(' '))
    // An authority that is about to expire issues short-lived certificates; renew them daily at most.
    return {
      certificate: identify(issued, `issued ${names}`),
      renewAt: Math.max(issued.notAfter - RENEW_MS, now + DAY_MS),
      askedAt: now,
    }
  }
}

function identify({ cert, key }: CertificatePair, sharedId?: string): ServerCertificate {
  const id = createHash('sha256').update(cert).update('\0').update(key).digest('base64url')
  return { id, sharedId: sharedId ?? id, cert, key }
}

function readEnd({ cert }: CertificatePair): number {
  try {
    return new X509Certificate(cert).validToDate.getTime()
  } catch {
    return Number.NaN
  }
}
