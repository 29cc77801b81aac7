/**
 * Lets visitors log in with one of the well-known providers, through the operator's own application there.
 *
 * @example
 * const lists = { scopes: [], email_addresses: [], email_domains: [], teams: [], organizations: [] }
 * const provider = { github: { client_id: 'a', client_secret: 'b', ...lists } }
 * const phases = compileOAuth({ ...login, provider, auth_check_interval: 0 }, tools)
 * const { respond } = await phases.request(request())
 * respond.status // 302
 * new URL(new Map(respond.headers).get('Location')).host // 'github.com'
 */

import { compileLogin, type LoginPhases } from '../login/compile-login.ts'
import type { ModuleTools } from '../tools.ts'
import type { OAuthSettings } from './form.ts'
import { kinds, type ProviderName } from './kinds.ts'
import { oauthProvider } from './oauth-provider.ts'

export function compileOAuth(settings: OAuthSettings, tools: ModuleTools): LoginPhases {
  // The keys of the form; `Object.keys` types them as strings.
  const named = (Object.keys(settings.provider) as ProviderName[]).filter((name) => settings.provider[name])
  const [name, ...more] = named
  const application = name && settings.provider[name]
  if (!application || more.length > 0) throw new Error('not exactly one provider is named')
  return compileLogin(settings, oauthProvider({ ...settings, name, kind: kinds[name], application }, tools), tools)
}
