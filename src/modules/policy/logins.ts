/** The logins of a policy: the actions' settings, passed to the same code that the `oauth` and `oidc` modules use. */

import type { Login } from '../../model/logins.ts'
import type { LoginPhases } from '../login/compile-login.ts'
import type { OAuthSettings } from '../oauth/form.ts'
import type { RequestContext } from '../phases.ts'
import type { FoundLogin, LoginGuard, PolicyTools } from './engine/action.ts'

export type PolicyLogin = LoginPhases & LoginGuard

export function policyLogin(phases: LoginPhases): PolicyLogin {
  return {
    ...phases,
    found(ctx: RequestContext) {
      const login = phases.loginOf(ctx)
      return login && foundOf(login)
    },
  }
}

function foundOf({ user, kept, createdAt, checkedAt }: Login): FoundLogin {
  const { accessToken = '', refreshToken = '', memberships = '{}' } = kept
  // Written by the provider of an `oauth` login, in this form.
  const { organizations = [], teams = [] } = JSON.parse(memberships) as { organizations?: string[]; teams?: string[] }
  return { user, accessToken, refreshToken, organizations, teams, createdAt, checkedAt }
}

/**
 * The login that must answer a request for a reserved path: the one that the request names, or else the first. Undefined
 * when the path belongs to none of them.
 */
export function answering(logins: readonly PolicyLogin[], ctx: RequestContext): LoginGuard | undefined {
  const { reservedPath } = ctx
  if (reservedPath === undefined) return undefined
  const possible = logins.filter(({ reserves }) => reserves.some(({ path }) => path === reservedPath))
  return possible.find((login) => login.isNamed(ctx)) ?? possible[0]
}

export function oauthSettings(given: Parameters<PolicyTools['guards']['oauth']>[0]): OAuthSettings {
  const { provider, client_id, client_secret, scopes, check_interval, ...login } = given
  const application = {
    client_id,
    client_secret,
    scopes,
    // Everybody who logs in; the rules that follow decide who is let in.
    email_addresses: [],
    email_domains: [],
    teams: [],
    organizations: [],
    groups: [],
  }
  return {
    ...login,
    provider: { [provider]: application },
    auth_check_interval: check_interval,
    // GitHub sends them only with this scope.
    keepsMemberships: provider === 'github' && scopes.includes('read:org'),
  }
}
