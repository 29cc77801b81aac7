/** The common parts of `oauth` and `openid-connect`: their settings, and the findings that later rules read. */
import type { Static } from 'typebox'
import { Type } from '../../../lib/shape/type.ts'
import { type FoundLogin, GUARD_STEPS, type LoginGuard, type Step } from './action.ts'
import { readDuration } from './duration.ts'
import { badSetting, checkDuration, mapOf, refuseExpressions } from './phase-settings.ts'

export const oauthProviderNames = [
  'amazon',
  'facebook',
  'github',
  'gitlab',
  'google',
  'linkedin',
  'microsoft',
  'twitch',
] as const
export type OAuthProviderName = (typeof oauthProviderNames)[number]

/** The longest session that the settings may ask for. */
const MAX_DURATION = '8760h'

const time = (description: string) => Type.Optional(Type.String({ maxBytes: 32, description }))

/** The operator's own application at a provider. */
export const applicationFields = {
  client_id: Type.String({
    default: '',
    maxBytes: 1024,
    description: 'Client id of your own application at the provider.',
  }),
  client_secret: Type.String({
    default: '',
    maxBytes: 4096,
    description: 'Client secret of your own application at the provider.',
  }),
}

/** The settings that every login has, whatever its provider. */
export const loginFields = {
  auth_id: Type.Optional(
    Type.String({
      minLength: 1,
      maxBytes: 64,
      pattern: '^[A-Za-z0-9_-]+$',
      description:
        'Name of this login, for `/postern/login?auth_id=…`; it distinguishes the logins of one route. Letters, digits, `_` and `-`.',
    }),
  ),
  ...applicationFields,
  scopes: Type.Array(Type.String({ minLength: 1, maxBytes: 255 }), {
    default: [],
    maxItems: 30,
    description: 'Scopes to request from the provider, besides those that the login itself needs.',
  }),
  authz_url_params: Type.Optional(
    Type.Record(Type.String(), Type.String({ maxBytes: 512 }), {
      maxProperties: 10,
      maxKeyBytes: 64,
      description: 'Further parameters of the URL of the provider to which visitors are sent.',
    }),
  ),
  max_session_duration: time('Time after a login after which a visitor must log in again; no limit when left out.'),
  idle_session_timeout: time('Time without a request after which a visitor must log in again; no limit when left out.'),
  idle_session_duration: time('Another name of `idle_session_timeout`.'),
  userinfo_refresh_interval: time(
    'Time after which the provider is asked about the visitor again; only at the login when left out.',
  ),
  allow_cors_preflight: Type.Boolean({
    default: false,
    description: 'Whether OPTIONS requests pass without a login, as CORS preflights need.',
  }),
  auth_cookie_domain: Type.Optional(
    Type.String({ maxBytes: 255, description: 'Not supported: a login is for one host.' }),
  ),
}

type LoginFields = Static<ReturnType<typeof Type.Object<typeof loginFields>>>

/** Parameters that the login sets itself; setting them by hand could weaken it. */
const ownParams: ReadonlySet<string> = new Set([
  'client_id',
  'client_secret',
  'code_challenge',
  'code_challenge_method',
  'nonce',
  'redirect_uri',
  'request',
  'request_uri',
  'response_mode',
  'response_type',
  'scope',
  'state',
])

/** Throws `BadValue` for what the form cannot express. */
export function checkLogin(config: LoginFields, at: string): void {
  refuseExpressions(config, at)
  for (const name of ['client_id', 'client_secret'] as const) {
    if (config[name] === '') {
      throw badSetting(`${at}.${name}`, 'is required: visitors log in through your own application at the provider')
    }
  }
  for (const [i, scope] of config.scopes.entries()) {
    // RFC 6749 §3.3
    if (!/^[\x21\x23-\x5b\x5d-\x7e]+$/.test(scope)) {
      throw badSetting(
        `${at}.scopes[${i}]`,
        'must be one scope of ASCII characters without spaces, quotes or backslashes',
      )
    }
  }
  for (const name of Object.keys(config.authz_url_params ?? {})) {
    if (ownParams.has(name)) {
      throw badSetting(`${at}.authz_url_params[${JSON.stringify(name)}]`, 'is a parameter that the login writes itself')
    }
  }
  if (config.auth_cookie_domain !== undefined) {
    throw badSetting(
      `${at}.auth_cookie_domain`,
      'is not supported: a cookie for several hosts would give each of them the logins of all others; leave it out, and visitors log in at each host',
    )
  }
  if (config.idle_session_timeout !== undefined && config.idle_session_duration !== undefined) {
    throw badSetting(
      `${at}.idle_session_duration`,
      'is another name of `idle_session_timeout`, which is given too; keep one',
    )
  }
  for (const name of durations) {
    const value = config[name]
    if (value !== undefined) checkDuration(value, `${at}.${name}`, { least: '1s', most: MAX_DURATION })
  }
}

const durations = [
  'max_session_duration',
  'idle_session_timeout',
  'idle_session_duration',
  'userinfo_refresh_interval',
] as const

/** The settings of a login under the names of the module `oidc`. Durations are in seconds, and 0 where there is no limit. */
export type LoginGuardSettings = ReturnType<typeof loginSettings>

export function loginSettings(config: LoginFields, authId: string) {
  const seconds = (text: string | undefined): number => (text === undefined ? 0 : readDuration(text))
  return {
    /** Distinguishes the logins of one route. */
    scope: authId,
    client_id: config.client_id,
    client_secret: config.client_secret,
    scopes: config.scopes,
    params: config.authz_url_params ?? {},
    options_passthrough: config.allow_cors_preflight,
    cookie_prefix: '',
    inactivity_timeout: seconds(config.idle_session_timeout ?? config.idle_session_duration),
    maximum_duration: seconds(config.max_session_duration),
    check_interval: seconds(config.userinfo_refresh_interval),
  }
}

/** The step of a login. Rules read its findings under each of `names`. */
export function loginStep(login: LoginGuard, names: readonly string[], settings: LoginGuardSettings): Step {
  return {
    login,
    cost: GUARD_STEPS,
    run(moment) {
      const request = moment.ownRequest as never // the same object that the module gets elsewhere
      const judged = login.request?.(request, moment.budget)
      return judged instanceof Promise ? judged.then(note) : note(judged)

      function note<Judged>(verdict: Judged): Judged {
        const found = verdict === undefined ? login.found(request) : undefined
        if (found)
          for (const name of names) moment.results.set(name, findings(found, settings.maximum_duration, moment.now))
        return verdict
      }
    },
    upstream: (outgoing, request) => login.upstream(outgoing, request as never),
  }
}

/** as the vendor documents them. Values that the provider does not give are empty, so that rules can compare. */
function findings(found: FoundLogin, maximumSeconds: number, now: number): ReadonlyMap<string, unknown> {
  const { user, organizations, teams, createdAt, checkedAt } = found
  const { id, name, email, username } = user
  const endsAt = maximumSeconds > 0 ? new Date(createdAt + maximumSeconds * 1000).toISOString() : ''
  return mapOf({
    identity: mapOf({ id, email, name, username, provider_user_id: id }),
    access_token: found.accessToken,
    refresh_token: found.refreshToken,
    expires_at: endsAt,
    github: mapOf({ organizations, teams }),
    session_timed_out: false,
    session_max_duration_reached: false,
    userinfo_refreshed: checkedAt > createdAt && checkedAt >= now,
  })
}
