/** What all logins are told by their forms, in the units of the program. */
import { type CookieNames, cookieNames } from './cookies.ts'

export interface LoginSettings {
  readonly passesOptions: boolean
  readonly cookies: CookieNames
  /** In milliseconds; 0 for no limit, as below. */
  readonly inactivityMs: number
  readonly maximumMs: number
  /** Tells several logins of one route apart: letters, digits, `_` and `-`. The one of a module has none. */
  readonly scope?: string | undefined
}

/** As `loginFields` store it. */
export interface LoginConfig {
  readonly options_passthrough: boolean
  readonly cookie_prefix: string
  readonly inactivity_timeout: number
  readonly maximum_duration: number
}

/** Where the logins of a route are kept that have this scope: each scope is a place of its own. */
export function placeId(routeId: string, scope: string | undefined): string {
  return scope === undefined ? routeId : `${routeId}~${scope}`
}

export function readLoginConfig(config: LoginConfig): LoginSettings {
  return {
    passesOptions: config.options_passthrough,
    cookies: cookieNames(config.cookie_prefix),
    inactivityMs: config.inactivity_timeout * 1000,
    maximumMs: config.maximum_duration * 1000,
  }
}
