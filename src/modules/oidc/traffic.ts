/** Lets visitors log in with an OpenID Connect provider. */
import { type AllowLists, allowing } from '../login/allow-list.ts'
import { type LoginConfig, readLoginConfig } from '../login/login-settings.ts'
import { compileLogin, type LoginPhases } from '../login/traffic.ts'
import type { ModuleTools } from '../tools.ts'
import { type OidcClient, oidcProvider } from './oidc-provider.ts'

export interface OidcSettings extends LoginConfig {
  readonly issuer: string
  readonly client_id: string
  readonly client_secret: string
  readonly scopes: readonly string[]
  /** As in `LoginSettings`. */
  readonly scope?: string | undefined
  /** Further parameters of the authorization request. */
  readonly params?: Readonly<Record<string, string>>
  /** Seconds after which the provider is asked about the user again; 0 for never. */
  readonly check_interval?: number
  /** Who is let in; everybody who logs in when absent. Only agents set it: the form of the module has no such lists. */
  readonly allow?: AllowLists | undefined
}

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
