/** Lets visitors log in with an OpenID Connect provider. */
import { type LoginConfig, readLoginConfig } from '../login/settings.ts'
import { compileLogin } from '../login/traffic.ts'
import type { Phases } from '../phases.ts'
import type { ModuleTools } from '../tools.ts'
import { type OidcClient, oidcProvider } from './provider.ts'

export interface OidcSettings extends LoginConfig {
  readonly issuer: string
  readonly client_id: string
  readonly client_secret: string
  readonly scopes: readonly string[]
}

export function compileOidc(settings: OidcSettings, tools: ModuleTools): Phases {
  const { issuer, client_id, client_secret, scopes } = settings
  const client: OidcClient = { issuer, clientId: client_id, clientSecret: client_secret, scopes }
  return compileLogin(readLoginConfig(settings), oidcProvider(client, tools), tools)
}
