/** The logins of a policy: the actions' settings, passed to the same code that the `oauth` and `oidc` modules use. */

import type { Login } from '../../model/logins.ts'
import type { LoginPhases } from '../login/compile-login.ts'
import type { OAuthSettings } from '../oauth/form.ts'
import type { OidcSettings } from '../oidc/form.ts'
import type { RequestContext } from '../phases.ts'
import type { FoundLogin, LoginGuard, PolicyTools } from './engine/action.ts'

type OAuthGiven = Parameters<PolicyTools['guards']['oauth']>[0]
type OidcGiven = Parameters<PolicyTools['guards']['oidc']>[0]

export interface PolicyLogin {
  readonly phases: LoginPhases
  readonly guard: LoginGuard
}

export function policyLogin(phases: LoginPhases): PolicyLogin {
  const guard: LoginGuard = {
    request: phases.request,
    upstream: (outgoing, ctx) => phases.upstream(outgoing, ctx),
    found(ctx) {
      const login = phases.loginOf(ctx)
      return login && foundOf(login)
    },
  }
  return { phases, guard }
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
  const possible = logins.filter(({ phases }) => phases.reserves.some(({ path }) => path === reservedPath))
  return (possible.find(({ phases }) => phases.isNamed(ctx)) ?? possible[0])?.guard
}

export function oauthSettings(given: OAuthGiven): OAuthSettings {
  const { provider, clientId, clientSecret, scopes, refreshSeconds } = given
  const application = {
    client_id: clientId,
    client_secret: clientSecret,
    scopes: [...scopes],
    // Everybody who logs in; the rules that follow decide who is let in.
    email_addresses: [],
    email_domains: [],
    teams: [],
    organizations: [],
    groups: [],
  }
  return {
    ...commonSettings(given),
    provider: { [provider]: application },
    auth_check_interval: refreshSeconds,
    // GitHub sends them only with this scope.
    keepsMemberships: provider === 'github' && scopes.includes('read:org'),
  }
}

export function oidcSettings(given: OidcGiven): OidcSettings {
  const { issuer, clientId, clientSecret, scopes, refreshSeconds } = given
  return {
    ...commonSettings(given),
    issuer,
    client_id: clientId,
    client_secret: clientSecret,
    scopes,
    check_interval: refreshSeconds,
  }
}

function commonSettings({ authId, params, passesOptions, idleSeconds, maximumSeconds }: OAuthGiven | OidcGiven) {
  return {
    scope: authId,
    params,
    options_passthrough: passesOptions,
    cookie_prefix: '',
    inactivity_timeout: idleSeconds,
    maximum_duration: maximumSeconds,
  }
}
