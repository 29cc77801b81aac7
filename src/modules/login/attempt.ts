/** One attempt to log in, from the redirect to the provider to the callback. */
import { randomBytes } from 'node:crypto'
import { openJson, type Seals, sealJson } from './sealed-text.ts'

/** how long an attempt may take, in milliseconds. */
export const ATTEMPT_MS = 15 * 60_000

/** How many characters of an id encode its time. */
const TIME_CHARS = 9

/** Where an attempt was made. No other route or edge accepts it. */
export interface AttemptScope {
  readonly edgeId: string
  readonly routeId: string
}

/**
 * The part of an attempt that travels in the state.
 *
 * Until the callback the server stores nothing. What it will need is sealed, partly in the state that the provider returns,
 * and partly in a cookie. So an attempt can only end in the browser in which it began.
 */
interface StatePart {
  readonly id: string
  readonly host: string
  readonly startedAt: number
}

/** The part of an attempt that is in the cookie. */
interface CookiePart {
  /**
   * The provider at which the attempt began. If the module uses another provider by the end, that one must not see the code.
   */
  readonly identity: string
  /** A path of the same host. */
  readonly to: string
  readonly kept: Readonly<Record<string, string>>
}

/** Ids sort by time, so that the oldest cookies can be removed when there are too many. */
export function newAttemptId(now: number): string {
  return now.toString(36).padStart(TIME_CHARS, '0') + randomBytes(16).toString('hex')
}

/** The id of the route comes first, unsealed, so that the module that can open the state is found. */
export function sealState(sealer: Seals, scope: AttemptScope, part: StatePart): string {
  return `${scope.routeId}.${sealJson(sealer, part, stateContext(scope))}`
}

export function routeOfState(state: string): string {
  return state.slice(0, Math.max(0, state.indexOf('.')))
}

export function openState(sealer: Seals, scope: AttemptScope, state: string): StatePart | undefined {
  if (routeOfState(state) !== scope.routeId) return undefined
  // Only `sealState` seals for this context.
  return openJson<StatePart>(sealer, state.slice(scope.routeId.length + 1), stateContext(scope))
}

export function sealCookie(sealer: Seals, scope: AttemptScope, id: string, part: CookiePart): string {
  return sealJson(sealer, part, cookieContext(scope, id))
}

export function openCookie(sealer: Seals, scope: AttemptScope, id: string, value: string): CookiePart | undefined {
  // Only `sealCookie` seals for this context.
  return openJson<CookiePart>(sealer, value, cookieContext(scope, id))
}

function stateContext({ edgeId, routeId }: AttemptScope): string {
  return `login state\0${edgeId}\0${routeId}`
}

function cookieContext({ edgeId, routeId }: AttemptScope, id: string): string {
  return `login attempt\0${edgeId}\0${routeId}\0${id}`
}
