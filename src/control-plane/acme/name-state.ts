/** The state of a name between two steps, and how the API shows it. */
import { timestamp } from '../../lib/clock.ts'
import type { ManagedStatus } from '../resources/managed-certificate.ts'

export interface NameState {
  /** The certificate in `/tls_certificates`. */
  readonly certificateId?: string
  /** When it will be renewed, and the window of the authority from which that was drawn, all in milliseconds since 1970. */
  readonly renewsAt?: number
  readonly window?: { readonly start: number; readonly end: number }
  /**
   * The order in progress: its address, empty until the authority has sent it, and the directory where it was begun.
   * `isAsked` is set from before the request until the response: the authority may have an order that we do not know.
   */
  readonly order?: { readonly url: string; readonly directory: string; readonly isAsked?: boolean }
  /** How many certificates in a row were replaced early. */
  readonly hurried?: number
  /** When getting this certificate began, in milliseconds since 1970. */
  readonly startedAt?: number
  /** Failures in a row, and the reason of the last one. */
  readonly failures?: number
  readonly fault?: { readonly code: string; readonly msg: string }
  /** When somebody last asked for another try, in milliseconds since 1970. */
  readonly askedAt?: number
  /** Whether no certificate was wanted for the name when it was last checked. */
  readonly isUnwanted?: boolean
  /** Whether the authority refuses orders that replace this certificate, since one did already. */
  readonly isReplaced?: boolean
}

export function readState(text: string): NameState {
  return JSON.parse(text) as NameState // written by us alone
}

/** `retriesAt` is in milliseconds since 1970. */
export function statusOf(state: NameState, retriesAt: number | undefined): ManagedStatus {
  const { renewsAt, startedAt, fault, order, certificateId } = state
  const isAtWork = certificateId === undefined || startedAt !== undefined || order !== undefined || fault !== undefined
  return {
    renews_at: renewsAt === undefined ? null : timestamp(renewsAt),
    provisioning_job: isAtWork
      ? {
          error_code: fault ? `ERR_${fault.code}` : null,
          msg: fault?.msg ?? (order ? 'A certificate is being ordered.' : 'A certificate will be ordered.'),
          started_at: startedAt === undefined ? null : timestamp(startedAt),
          retries_at: fault && retriesAt !== undefined ? timestamp(retriesAt) : null,
        }
      : null,
  }
}
