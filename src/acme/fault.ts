/** Why there is no certificate for a name, as the API, the log and the metrics tell it. */

/** What each code means to whoever reads it; details of the authority follow. */
export const faultTexts = {
  AUTHORITY_UNAVAILABLE: 'The certificate authority cannot be reached or does not work at the moment.',
  AUTHORITY_RATE_LIMIT: 'The certificate authority issues no more certificates for now: its rate limit is reached.',
  ACME_ACCOUNT_REFUSED:
    'The certificate authority refuses our account; check `--acme-email`, `--acme-eab-key-id` and its key.',
  CERTIFICATE_REFUSED: 'The certificate authority does not issue a certificate for this name.',
  CHALLENGE_FAILED:
    'The certificate authority did not find this server under the name: its DNS record must lead here, on port 80 or 443.',
  CERTIFICATE_NEEDS_DNS:
    'A wildcard can be proven only by a DNS record; set `--acme-dns-server` or `--acme-dns-command`, or upload a certificate to `/tls_certificates`.',
  CERTIFICATE_UNUSABLE: 'What the certificate authority sent cannot be used for this name.',
  DNS_RECORD_FAILED: 'The DNS record that proves the name could not be set.',
  CHALLENGE_NOT_SHOWN: 'Not every process of this server is ready to answer the certificate authority yet.',
} as const

export type AcmeFaultCode = keyof typeof faultTexts

/** See the fields of `AcmeFault`. */
interface AcmeFaultOptions {
  readonly isOrderLost?: boolean
  readonly isAccountLost?: boolean
  readonly isUnsure?: boolean
  readonly retryAfterMs?: number | undefined
}

export class AcmeFault extends Error {
  readonly code: AcmeFaultCode
  /** What the authority, or whoever else failed, said of it. */
  readonly detail: string
  /** The order cannot be continued, and a new one is needed. */
  readonly isOrderLost: boolean
  /** The authority does not know our account any more. */
  readonly isAccountLost: boolean
  /** The authority may have done what it was asked for: it was sent, and not refused. */
  readonly isUnsure: boolean
  /** When the authority wants to be asked again at the earliest, from now, in milliseconds. */
  readonly retryAfterMs: number | undefined

  /** `detail` is bounded, and may hold words of the authority. */
  constructor(code: AcmeFaultCode, detail: string, options: ErrorOptions & AcmeFaultOptions = {}) {
    const { isOrderLost = false, isAccountLost = false, isUnsure = false, retryAfterMs, ...rest } = options
    super(detail === '' ? faultTexts[code] : `${faultTexts[code]} ${printable(detail)}`, rest)
    this.name = 'AcmeFault'
    this.code = code
    this.detail = detail
    this.isOrderLost = isOrderLost
    this.isAccountLost = isAccountLost
    this.isUnsure = isUnsure
    this.retryAfterMs = retryAfterMs
  }
}

/** The longest detail, in characters. */
const MAX_DETAIL = 500

/** Words of others go into answers and logs: bounded, on one line. */
function printable(text: string): string {
  return text.replaceAll(/[^\x20-\x7e\u00a1-\uffff]+/g, ' ').slice(0, MAX_DETAIL)
}
