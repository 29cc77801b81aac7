/** Turns errors of the library into login faults. */

import { FetchFault } from '../../lib/http/outbound-fetch.ts'
import type { LoginFault } from '../login/login-provider.ts'
import type { Libraries } from './libraries.ts'

/** Codes of the library for unusable answers of the provider. */
const noAnswer: ReadonlySet<string> = new Set([
  'OAUTH_HTTP_REQUEST_FORBIDDEN',
  'OAUTH_REQUEST_PROTOCOL_FORBIDDEN',
  'OAUTH_RESPONSE_IS_NOT_CONFORM',
  'OAUTH_RESPONSE_IS_NOT_JSON',
  'OAUTH_TIMEOUT',
  'OAUTH_ABORT',
  'OAUTH_WWW_AUTHENTICATE_CHALLENGE',
  'OAUTH_PARSE_ERROR',
])

export function exchangeFault(error: unknown, { ResponseBodyError }: Libraries['openid']): LoginFault {
  const reason = reasonOf(error)
  if (error instanceof ResponseBodyError) {
    const said = /^[\w.-]{1,64}$/.test(error.error) ? error.error : 'an error'
    const fault = said === 'invalid_grant' ? 'LOGIN_CODE_REFUSED' : 'LOGIN_EXCHANGE_FAILED'
    return { fault, reason: `the provider answered ${said}` }
  }
  if (causesOf(error).some(lacksIdToken)) return { fault: 'LOGIN_NO_ID_TOKEN', reason: 'no ID token' }
  const code = codeOf(error)
  if (code === undefined || noAnswer.has(code)) return { fault: 'LOGIN_EXCHANGE_FAILED', reason }
  return { fault: 'LOGIN_TOKEN_REFUSED', reason }
}

/**
 * The reason for the log, which holds no token, unlike the causes of the error. Our own messages are shown in full, since
 * they are written for the log; otherwise only the code or the name.
 */
export function reasonOf(error: unknown): string {
  const ours = causesOf(error).find((each) => each instanceof FetchFault)
  if (ours instanceof FetchFault) return ours.message
  return codeOf(error) ?? (error instanceof Error ? error.name : 'unknown')
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}

function lacksIdToken(cause: unknown): boolean {
  if (typeof cause !== 'object' || cause === null || !('body' in cause)) return false
  const { body } = cause
  return typeof body === 'object' && body !== null && 'access_token' in body && !('id_token' in body)
}

/** An error and its causes, the outermost first. */
function causesOf(error: unknown): unknown[] {
  const causes: unknown[] = []
  for (let each = error; each !== undefined && causes.length < 5; ) {
    causes.push(each)
    each = typeof each === 'object' && each !== null && 'cause' in each ? each.cause : undefined
  }
  return causes
}
