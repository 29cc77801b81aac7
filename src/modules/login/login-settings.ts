/** The settings that all logins share, with durations in milliseconds. */
import { type CookieNames, cookieNames } from './login-cookies.ts'
import type { LoginConfig } from './login-form.ts'

export interface LoginSettings {
  readonly passesOptions: boolean
  readonly cookies: CookieNames
  /** In milliseconds; this and the next are 0 for no limit. */
  readonly inactivityMs: number
  readonly maximumMs: number
  /** Tells several logins of one route apart: letters, digits, `_` and `-`. The login of a module has none. */
  readonly scope?: string | undefined
}

/** The id under which logins of this route and scope are stored; each scope has its own. */
export function scopeId(routeId: string, scope: string | undefined): string {
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
