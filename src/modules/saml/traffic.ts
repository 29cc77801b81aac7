/** Lets visitors log in with an identity provider that speaks SAML. */
import { type LoginConfig, readLoginConfig } from '../login/login-settings.ts'
import { compileLogin } from '../login/traffic.ts'
import type { Phases } from '../phases.ts'
import type { ModuleTools } from '../tools.ts'
import { samlProvider } from './saml-provider.ts'

export interface SamlSettings extends LoginConfig {
  readonly idp_metadata: string
  readonly idp_metadata_url: string
  readonly force_authn: boolean
  readonly allow_idp_initiated: boolean
  readonly authorized_groups: readonly string[]
  readonly nameid_format: string
}

export function compileSaml(settings: SamlSettings, tools: ModuleTools): Phases {
  const client = {
    idp_metadata: settings.idp_metadata,
    idp_metadata_url: settings.idp_metadata_url,
    forcesAuthn: settings.force_authn,
    allowsUnsolicited: settings.allow_idp_initiated,
    authorizedGroups: settings.authorized_groups,
    nameIdFormat: settings.nameid_format,
  }
  return compileLogin(readLoginConfig(settings), samlProvider(client, tools), tools)
}
