/** When rules run: the phases of traffic, and the phase of each of the two rule lists in each place. */
import type { Place } from '../../../model/place.ts'

/** `connect`: a connection was accepted. `request`: a request has arrived. `response`: its answer is on the way back. */
export type Phase = 'connect' | 'request' | 'response'

export const directions = ['inbound', 'outbound'] as const
export type Direction = (typeof directions)[number]

/** The names of the two rule lists where the policy was written. */
export type ListNames = Readonly<Record<Direction, string>>

export const ownLists: ListNames = { inbound: 'inbound', outbound: 'outbound' }

/** Where and when an expression or action runs. */
export interface Site {
  readonly place: Place
  readonly phase: Phase
  readonly lists: ListNames
  /** Whether the expression decides about a retry of `http-request`, and so can read the results of the attempts. */
  readonly isRetry?: boolean
}

/** the phase of a rule list, or undefined where that list has none. */
export function phaseOf(place: Place, direction: Direction): Phase | undefined {
  if (place === 'route') return direction === 'inbound' ? 'request' : 'response'
  return direction === 'inbound' ? 'connect' : undefined
}

/** A place as messages name it. */
export function placeName(place: Place): string {
  return { tcp: 'a TCP edge', tls: 'a TLS edge', https: 'an HTTPS edge', route: 'a route' }[place]
}
