/** Reads the errors of an ACME server (RFC 8555 §6.7). */
import { AcmeFault, type AcmeFaultCode } from './order-fault.ts'

const PREFIX = 'urn:ietf:params:acme:error:'

/** Our code for each error of the server; any other error is a refusal of the order. */
const codes: Readonly<Record<string, AcmeFaultCode>> = {
  rateLimited: 'AUTHORITY_RATE_LIMIT',
  serverInternal: 'AUTHORITY_UNAVAILABLE',
  badNonce: 'AUTHORITY_UNAVAILABLE',
  accountDoesNotExist: 'ACME_ACCOUNT_REFUSED',
  externalAccountRequired: 'ACME_ACCOUNT_REFUSED',
  invalidContact: 'ACME_ACCOUNT_REFUSED',
  unsupportedContact: 'ACME_ACCOUNT_REFUSED',
  userActionRequired: 'ACME_ACCOUNT_REFUSED',
  connection: 'CHALLENGE_FAILED',
  dns: 'CHALLENGE_FAILED',
  incorrectResponse: 'CHALLENGE_FAILED',
  tls: 'CHALLENGE_FAILED',
  unauthorized: 'CHALLENGE_FAILED',
}

/** Longest time that an authority can make us wait, in milliseconds: a week. */
const LONGEST_WAIT_MS = 7 * 86_400_000

/** The fields of what may be an object. */
export function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {}
}

/** Reads a problem from whatever was sent; its type is without the prefix, and empty if there is none. */
export function readProblem(value: unknown) {
  const { type, detail } = fieldsOf(value)
  return {
    type: typeof type === 'string' && type.startsWith(PREFIX) ? type.slice(PREFIX.length) : '',
    detail: typeof detail === 'string' ? detail : '',
  }
}

/** The fault for a response with an error status; `isUnsure` unless nothing was sent that could have been carried out. */
export function problemFault(
  status: number,
  value: unknown,
  { retryAfterMs, isSent = false }: { readonly retryAfterMs?: number | undefined; readonly isSent?: boolean } = {},
): AcmeFault {
  const { type, detail } = readProblem(value)
  const isAway = status >= 500 || (status === 429 && type === '')
  const code = isAway && type !== 'rateLimited' ? 'AUTHORITY_UNAVAILABLE' : (codes[type] ?? 'CERTIFICATE_REFUSED')
  return new AcmeFault(code, detail || type || `It responded with status ${status}.`, {
    isAccountLost: type === 'accountDoesNotExist',
    isOrderLost: isFinal(status, code),
    isUnsure: isSent && status >= 500,
    retryAfterMs,
  })
}

/** Whether a retry would be pointless: the request was understood, and refused. */
function isFinal(status: number, code: AcmeFaultCode): boolean {
  return status >= 400 && status < 500 && (code === 'CERTIFICATE_REFUSED' || code === 'CHALLENGE_FAILED')
}

/** `Retry-After` as milliseconds from now: a number of seconds, or a date. */
export function readRetryAfter(text: string | null, now: number): number | undefined {
  if (text === null) return undefined
  const ms = /^\d{1,9}$/.test(text) ? Number(text) * 1000 : Date.parse(text) - now
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(ms, 0), LONGEST_WAIT_MS)
}
