/** The time at which an authority suggests renewing a certificate (ARI, RFC 9773). */
import { X509Certificate } from 'node:crypto'
import { certificateParts } from '../../lib/x509/certificate-fields.ts'
import { derElements, derOnly, derTag } from '../../lib/x509/der.ts'
import { fieldsOf } from './acme-problem.ts'

export interface RenewalWindow {
  /** In milliseconds since 1970, as is `end`. */
  readonly start: number
  readonly end: number
  /** When to ask again, from now, in milliseconds. */
  readonly askAgainMs: number
}

const AUTHORITY_KEY_ID = '2.5.29.35'

/** The tag of `keyIdentifier` in an AuthorityKeyIdentifier (RFC 5280 §4.2.1.1). */
const KEY_IDENTIFIER = 0x80

const MINUTE_MS = 60_000

/** When to ask again: by default, and at the latest (RFC 9773 §4.3.2). */
const ASK_MS = { usual: 6 * 60 * MINUTE_MS, most: 24 * 60 * MINUTE_MS }

/** The id of a certificate at an authority (RFC 9773 §4.1); undefined for one that does not name its issuer's key. */
export function renewalId(certificate: string): string | undefined {
  const { raw, serialNumber } = new X509Certificate(certificate)
  const value = certificateParts(raw).extensions.get(AUTHORITY_KEY_ID)
  const keyId = value && derElements(derOnly(value, derTag.sequence)).find(({ tag }) => tag === KEY_IDENTIFIER)
  if (!keyId) return undefined
  const digits = serialNumber.length % 2 === 0 ? serialNumber : `0${serialNumber}`
  const serial = Buffer.from(digits, 'hex')
  // As in DER, where a number that begins with a set bit would be negative.
  const bytes = (serial[0] ?? 0) >= 0x80 ? Buffer.concat([Buffer.of(0), serial]) : serial
  return `${keyId.body.toString('base64url')}.${bytes.toString('base64url')}`
}

/** Reads the response of an authority; undefined if it is invalid. The next request is at least `leastAskMs` later. */
export function readRenewalWindow(
  value: unknown,
  { retryAfterMs, leastAskMs }: { readonly retryAfterMs: number | undefined; readonly leastAskMs: number },
): RenewalWindow | undefined {
  const { start, end } = fieldsOf(fieldsOf(value).suggestedWindow)
  const [from, to] = [Date.parse(String(start)), Date.parse(String(end))]
  if (Number.isNaN(from) || Number.isNaN(to) || to < from) return undefined
  const askAgainMs = Math.min(Math.max(retryAfterMs ?? ASK_MS.usual, leastAskMs), ASK_MS.most)
  return { start: from, end: to, askAgainMs }
}
