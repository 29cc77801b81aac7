/** The settings that all logins share, with durations in milliseconds. */
import { cookieNames } from './login-cookies.ts'
import type { LoginConfig } from './login-form.ts'

export type LoginSettings = ReturnType<typeof readLoginConfig>

/** The id under which logins of this route and scope are stored; each scope has its own. */
export function scopeId(routeId: string, scope: string | undefined): string {
  return scope === undefined ? routeId : `${routeId}~${scope}`
}

export function readLoginConfig(config: LoginConfig) {
  return {
    passesOptions: config.options_passthrough,
    cookies: cookieNames(config.cookie_prefix),
    /** In milliseconds; this and the next are 0 for no limit. */
    inactivityMs: config.inactivity_timeout * 1000,
    maximumMs: config.maximum_duration * 1000,
    scope: config.scope,
  }
}
