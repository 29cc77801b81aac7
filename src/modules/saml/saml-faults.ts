/** Turns faults of documents and identity providers into login faults. */

import { FetchFault } from '../../lib/http/outbound-fetch.ts'
import { WorkRefused, WorkTooHeavy } from '../../lib/threads/worker-pool.ts'
import type { LoginFault } from '../login/login-provider.ts'
import type { AnswerFault } from './answer.ts'
import { MetadataFault } from './identity-provider.ts'

/** The fault for metadata that cannot be fetched or used. */
export function asDown(error: unknown): LoginFault {
  if (error instanceof FetchFault || error instanceof MetadataFault) {
    return { fault: 'LOGIN_PROVIDER_DOWN', reason: error.message }
  }
  return asLoginFault(asBusy(error))
}

/** The fault for when the threads that read documents are full; rethrows any other error. */
export function asBusy(error: unknown): AnswerFault {
  if (error instanceof WorkRefused) return { fault: 'busy', reason: error.message }
  if (error instanceof WorkTooHeavy) return { fault: 'unreadable', reason: error.message }
  throw error
}

const codes = {
  unreadable: 'LOGIN_ANSWER_UNREADABLE',
  encrypted: 'LOGIN_ANSWER_ENCRYPTED',
  unsigned: 'LOGIN_ANSWER_UNSIGNED',
  ambiguous: 'LOGIN_ANSWER_AMBIGUOUS',
  denied: 'LOGIN_DENIED',
  failed: 'LOGIN_PROVIDER_ERROR',
  busy: 'SERVER_BUSY',
} as const satisfies Record<AnswerFault['fault'], LoginFault['fault']>

export function asLoginFault({ fault, reason }: AnswerFault): LoginFault {
  return { fault: codes[fault], reason }
}
