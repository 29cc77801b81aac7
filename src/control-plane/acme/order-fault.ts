/** Why there is no certificate for a name, as the API, the log and the metrics report it. */

/** The sentence for each code; details from the authority follow it. */
const faultTexts = {
  AUTHORITY_UNAVAILABLE: 'The certificate authority cannot be reached or does not work at the moment.',
  AUTHORITY_RATE_LIMIT: 'The certificate authority issues no more certificates for now: its rate limit is reached.',
  ACME_ACCOUNT_REFUSED:
    'The certificate authority refuses the account of this server; check `--acme-email`, `--acme-eab-key-id` and its key.',
  CERTIFICATE_REFUSED: 'The certificate authority does not issue a certificate for this name.',
  CHALLENGE_FAILED:
    'The certificate authority could not verify the name: its DNS record must point to this server, on port 80 or 443.',
  CERTIFICATE_NEEDS_DNS:
    'A wildcard can be proven only by a DNS record; set `--acme-dns-server` or `--acme-dns-command`, or upload a certificate to `/tls_certificates`.',
  CERTIFICATE_UNUSABLE: 'The certificate that the authority sent cannot be used for this name.',
  DNS_RECORD_FAILED: 'The DNS record that proves the name could not be set.',
  CHALLENGE_NOT_SHOWN: 'Not every process of this server is ready to answer the certificate authority yet.',
} as const

export type AcmeFaultCode = keyof typeof faultTexts

type AcmeFaultOptions = Partial<Pick<AcmeFault, 'isOrderLost' | 'isAccountLost' | 'isUnsure' | 'retryAfterMs'>>

export class AcmeFault extends Error {
  readonly code: AcmeFaultCode
  /** The message of the authority, or of whatever else failed. */
  readonly detail: string
  /** The order cannot be continued, and a new one is needed. */
  readonly isOrderLost: boolean
  /** The authority no longer knows our account. */
  readonly isAccountLost: boolean
  /** The authority may have carried out the request: it was sent, and not refused. */
  readonly isUnsure: boolean
  /** The earliest time for the next request according to the authority, from now, in milliseconds. */
  readonly retryAfterMs: number | undefined

  /** `detail` is cut to a limit, and may be text of the authority. */
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

/** The deepest cause that is named. */
const MAX_CAUSES = 4

/** What failed and why, for a line of the log. Without a stack: these are faults of others, and everything is tried again. */
export function reasonOf(error: unknown): string {
  const said: string[] = []
  let each = error
  for (let depth = 0; each instanceof Error && depth < MAX_CAUSES; depth++, each = each.cause) {
    const text = printable(each.message)
    if (!said.some((before) => before.includes(text))) said.push(text)
  }
  return said.length > 0 ? said.join(': ') : printable(String(error))
}

/** The longest detail, in characters. */
const MAX_DETAIL = 500

/** Makes text of others fit for responses and logs: bounded, on one line. */
function printable(text: string): string {
  return text.replaceAll(/[^\x20-\x7e\u00a1-\uffff]+/g, ' ').slice(0, MAX_DETAIL)
}
