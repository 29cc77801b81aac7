/**
 * Lets visitors log in with an OpenID Connect provider.
 *
 * @example
 * const issuer = 'https://login.example.com'
 * const phases = compileOidc({ ...login, issuer, client_id: 'a', client_secret: 'b', scopes: [] }, tools)
 * phases.reserves[0].path // '/oauth2/callback'
 * // These tools reach no provider. With one, a stranger is sent there.
 * (await phases.request(request())).refuse // 'LOGIN_PROVIDER_DOWN'
 */
import { allowing } from '../login/allow-list.ts'
import { compileLogin, type LoginPhases } from '../login/compile-login.ts'
import { readLoginConfig } from '../login/login-settings.ts'
import type { ModuleTraffic } from '../module-traffic.ts'
import type { ModuleTools } from '../tools.ts'
import type { OidcSettings } from './form.ts'
import { loadLibrariesAhead } from './libraries.ts'
import { type OidcClient, oidcProvider } from './oidc-provider.ts'

export function compileOidc(settings: OidcSettings, tools: ModuleTools): LoginPhases {
  const { issuer, client_id, client_secret, scopes, scope, params = {}, check_interval = 0, allow } = settings
  const client: OidcClient = {
    issuer,
    clientId: client_id,
    clientSecret: client_secret,
    // The lists hold e-mail addresses, which few providers give without this scope.
    scopes: allow ? ['email', ...scopes] : scopes,
    params,
    checkEveryMs: check_interval * 1000,
  }
  const provider = oidcProvider(client, tools)
  return compileLogin({ ...readLoginConfig(settings), scope }, allow ? allowing(allow, provider) : provider, tools)
}

export const oidcTraffic: ModuleTraffic<OidcSettings> = {
  name: 'oidc',
  compile: compileOidc,
  load: loadLibrariesAhead,
}
