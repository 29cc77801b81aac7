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
import type { ModuleTools } from '../tools.ts'
import type { OidcSettings } from './form.ts'
import { oidcProvider } from './oidc-provider.ts'

export function compileOidc(settings: OidcSettings, tools: ModuleTools): LoginPhases {
  const { allow } = settings
  const provider = oidcProvider(settings, tools)
  return compileLogin(settings, allow ? allowing(allow, provider) : provider, tools)
}
