/**
 * Lets visitors log in with an identity provider that speaks SAML.
 *
 * @example
 * const provider = { idp_metadata: '', idp_metadata_url: 'https://idp.example.com/metadata', nameid_format: '' }
 * const rules = { authorized_groups: [], force_authn: false, allow_idp_initiated: false }
 * const phases = compileSaml({ ...login, ...provider, ...rules }, tools)
 * phases.reserves[0].path // '/postern/saml/{route}/acs'
 * // These tools reach no provider. With one, a stranger is sent there.
 * (await phases.request(request())).refuse // 'LOGIN_PROVIDER_DOWN'
 */

import { compileLogin } from '../login/compile-login.ts'
import type { Phases } from '../phases.ts'
import type { ModuleTools } from '../tools.ts'
import type { SamlSettings } from './form.ts'
import { samlProvider } from './saml-provider.ts'

export function compileSaml(settings: SamlSettings, tools: ModuleTools): Phases {
  return compileLogin(settings, samlProvider(settings, tools), tools)
}
