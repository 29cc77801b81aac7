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
import { readLoginConfig } from '../login/login-settings.ts'
import type { ModuleTraffic } from '../module-traffic.ts'
import type { ModuleTools } from '../tools.ts'
import type { OAuthSettings } from './form.ts'
import type { OAuthKind } from './kind.ts'
import { amazon } from './kinds/amazon.ts'
import { facebook } from './kinds/facebook.ts'
import { github } from './kinds/github.ts'
import { gitlab } from './kinds/gitlab.ts'
import { google } from './kinds/google.ts'
import { linkedin } from './kinds/linkedin.ts'
import { microsoft } from './kinds/microsoft.ts'
import { twitch } from './kinds/twitch.ts'
import { oauthProvider } from './oauth-provider.ts'

type ProviderName = keyof OAuthSettings['provider']

const kinds: Readonly<Record<ProviderName, OAuthKind>> = {
  amazon,
  facebook,
  github,
  gitlab,
  google,
  linkedin,
  microsoft,
  twitch,
}

export function compileOAuth(settings: OAuthSettings, tools: ModuleTools): LoginPhases {
  // The keys of the form; `Object.keys` types them as strings.
  const named = (Object.keys(settings.provider) as ProviderName[]).filter((name) => settings.provider[name])
  const [name, ...more] = named
  const application = name && settings.provider[name]
  if (!application || more.length > 0) throw new Error('not exactly one provider is named')
  const checkEveryMs = settings.auth_check_interval * 1000
  const { scope, params = {}, keepsMemberships = false } = settings
  const client = { name, kind: kinds[name], application, checkEveryMs, params, keepsMemberships }
  return compileLogin({ ...readLoginConfig(settings), scope }, oauthProvider(client, tools), tools)
}

export const oauthTraffic: ModuleTraffic<OAuthSettings> = { name: 'oauth', compile: compileOAuth }
