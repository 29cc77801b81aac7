/** What all logins are told by their forms, in the units of the program. */
import { type CookieNames, cookieNames } from './cookies.ts'

export interface LoginSettings {
  readonly passesOptions: boolean
  readonly cookies: CookieNames
  /** In milliseconds; 0 for no limit, as below. */
  readonly inactivityMs: number
  readonly maximumMs: number
}

/** As `loginFields` store it. */
export interface LoginConfig {
  readonly options_passthrough: boolean
  readonly cookie_prefix: string
  readonly inactivity_timeout: number
  readonly maximum_duration: number
}

export function readLoginConfig(config: LoginConfig): LoginSettings {
  return {
    passesOptions: config.options_passthrough,
    cookies: cookieNames(config.cookie_prefix),
    inactivityMs: config.inactivity_timeout * 1000,
    maximumMs: config.maximum_duration * 1000,
  }
}
