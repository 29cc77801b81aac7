/**
 * One attempt to log in. It begins with a redirect to the provider and ends at the callback, and until then the server
 * keeps nothing: what it must know again is sealed, partly in the state that the provider gives back, and partly in a
 * cookie, so that nobody ends an attempt in another browser than the one that it began in.
 */
import { randomBytes } from 'node:crypto'
import type { Sealer } from '../../lib/secrets/seal.ts'
import { openText, sealText } from './sealed-text.ts'

/** how old an attempt may be at its end, in milliseconds. */
export const ATTEMPT_MS = 15 * 60_000

/** Characters of an id that are its time. */
const TIME_CHARS = 9

/** Where it is made: no other route and no other edge takes it. */
export interface AttemptPlace {
  readonly edgeId: string
  readonly routeId: string
}

/** The part of it in the state. */
export interface StatePart {
  readonly id: string
  readonly host: string
  readonly startedAt: number
}

/** The part of it in the cookie. */
export interface CookiePart {
  /** Of the provider that it began at: when the module names another by then, the code is not for that one to see. */
  readonly identity: string
  /** A path of the same host. */
  readonly to: string
  readonly kept: Readonly<Record<string, string>>
}

type Seals = Pick<Sealer, 'seal' | 'open'>

/** Ids of attempts sort by their time, so that of too many cookies the oldest can go. */
export function newAttemptId(now: number): string {
  return now.toString(36).padStart(TIME_CHARS, '0') + randomBytes(16).toString('hex')
}

/** The route stands in clear before it, for whoever has to find the module that can open it. */
export function sealState(sealer: Seals, place: AttemptPlace, part: StatePart): string {
  return `${place.routeId}.${sealText(sealer, JSON.stringify(part), stateContext(place))}`
}

export function routeOfState(state: string): string {
  return state.slice(0, Math.max(0, state.indexOf('.')))
}

export function openState(sealer: Seals, place: AttemptPlace, state: string): StatePart | undefined {
  if (routeOfState(state) !== place.routeId) return undefined
  const text = openText(sealer, state.slice(place.routeId.length + 1), stateContext(place))
  // Nobody but `sealState` seals for this context.
  return text === undefined ? undefined : (JSON.parse(text) as StatePart)
}

export function sealCookie(sealer: Seals, place: AttemptPlace, id: string, part: CookiePart): string {
  return sealText(sealer, JSON.stringify(part), cookieContext(place, id))
}

export function openCookie(sealer: Seals, place: AttemptPlace, id: string, value: string): CookiePart | undefined {
  const text = openText(sealer, value, cookieContext(place, id))
  // Nobody but `sealCookie` seals for this context.
  return text === undefined ? undefined : (JSON.parse(text) as CookiePart)
}

function stateContext({ edgeId, routeId }: AttemptPlace): string {
  return `login state\0${edgeId}\0${routeId}`
}

function cookieContext({ edgeId, routeId }: AttemptPlace, id: string): string {
  return `login attempt\0${edgeId}\0${routeId}\0${id}`
}
