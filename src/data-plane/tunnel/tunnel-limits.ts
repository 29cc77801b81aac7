/** The limits of a listener, each with its unit; tests may make them small. */
import { shareOf } from '../../lib/limits/share-of.ts'

export interface ListenerLimits {
  /** From connect to authenticated, TLS handshake included, in milliseconds. */
  readonly authenticationMs: number
  /** Most unauthenticated connections. */
  readonly unproven: number
  /** Most unauthenticated connections from one address. */
  readonly unprovenPerIp: number
  /**
   * Failed authentications from one address per minute; answers to further ones are delayed, and these are counted but not
   * logged.
   */
  readonly failuresPerMinute: number
  /** How long such an answer is delayed, in milliseconds: the delay slows an agent that retries a wrong token in a loop. */
  readonly lateRefusalMs: number
  /** How long a refused agent has to read why, in milliseconds. */
  readonly refusalMs: number
  /** The shortest heartbeat interval that an agent may ask for, in milliseconds. */
  readonly leastHeartbeatMs: number
  /** How long the holder of an address may take to show that it lives when another agent asks for it, in milliseconds. */
  readonly signOfLifeMs: number
  /** How long a command may go unanswered, in milliseconds (D44). */
  readonly commandMs: number
}

export const listenerLimits: ListenerLimits = {
  authenticationMs: 10_000,
  unproven: 4096,
  unprovenPerIp: 256,
  failuresPerMinute: 60,
  lateRefusalMs: 2000,
  refusalMs: 1000,
  leastHeartbeatMs: 1000,
  signOfLifeMs: 2000,
  commandMs: 10_000,
}

/** The share of these limits for one of several listeners, so that all together admit no more than one would. */
export function admissionOf(
  { unproven, unprovenPerIp, failuresPerMinute }: ListenerLimits,
  listeners: number,
): Pick<ListenerLimits, 'unproven' | 'unprovenPerIp' | 'failuresPerMinute'> {
  return {
    unproven: shareOf(unproven, listeners),
    unprovenPerIp: shareOf(unprovenPerIp, listeners),
    failuresPerMinute: shareOf(failuresPerMinute, listeners),
  }
}
