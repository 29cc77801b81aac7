/** Lets visitors log in with one of the well-known providers, through the operator's own application there. */
import type { Static } from 'typebox'
import { type LoginConfig, readLoginConfig } from '../login/login-settings.ts'
import { compileLogin, type LoginPhases } from '../login/traffic.ts'
import type { ModuleTools } from '../tools.ts'
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
import type { providers } from './providers.ts'

type Providers = Static<typeof providers>

export interface OAuthSettings extends LoginConfig {
  readonly provider: Providers
  readonly auth_check_interval: number
  /** As in `LoginSettings`. */
  readonly scope?: string | undefined
  /** Further parameters of the authorization request. */
  readonly params?: Readonly<Record<string, string>>
  /** Whether to find out and store a user's organizations and teams, for rules to read. */
  readonly keepsMemberships?: boolean
}

const kinds: Readonly<Record<keyof Providers, OAuthKind>> = {
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
  const named = (Object.keys(settings.provider) as (keyof Providers)[]).filter((name) => settings.provider[name])
  const [name, ...more] = named
  const application = name && settings.provider[name]
  if (!application || more.length > 0) throw new Error('not exactly one provider is named')
  const checkEveryMs = settings.auth_check_interval * 1000
  const { scope, params = {}, keepsMemberships = false } = settings
  const client = { name, kind: kinds[name], application, checkEveryMs, params, keepsMemberships }
  return compileLogin({ ...readLoginConfig(settings), scope }, oauthProvider(client, tools), tools)
}
