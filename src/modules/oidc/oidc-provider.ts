/** An OpenID Connect provider as logins see it: the code flow with PKCE, with every part of the ID token checked. */
import type { IDToken, TokenEndpointResponse } from 'openid-client'
import type { Login, LoginUser } from '../../model/logins.ts'
import type { LoginConfig } from '../login/login-form.ts'
import { boundText, digestOf, type LoggedIn, type LoginFault, type LoginProvider } from '../login/login-provider.ts'
import type { ModuleTools } from '../tools.ts'
import { CLOCK_TOLERANCE, type Discovered, discovery } from './discovery.ts'
import type { OidcSettings } from './form.ts'
import { loadLibraries } from './libraries.ts'
import { exchangeFault, reasonOf } from './oidc-faults.ts'

/** The settings that are about the provider. */
export type OidcClient = Omit<OidcSettings, keyof LoginConfig>

/** Parameters of a callback that the exchange of its code depends on. */
const answerParams = ['code', 'state', 'iss'] as const

export function oidcProvider(
  client: OidcClient,
  { fetch, now, log }: Pick<ModuleTools, 'fetch' | 'now' | 'log'>,
): LoginProvider {
  const { issuer, client_id: clientId, scopes, params: ownParams, check_interval = 0, allow } = client
  const checkEveryMs = check_interval * 1000
  const discovered = discovery(client, loadLibraries, { fetch, now, log })
  // The lists hold e-mail addresses, which few providers give without this scope.
  const scope = [...new Set(['openid', ...(allow ? ['email'] : []), ...scopes])].join(' ')

  return {
    name: 'oidc',
    url: issuer,
    clientId,
    identity: digestOf(['oidc', issuer, clientId, scope]),
    rules: '',
    checkEveryMs,
    callbackPaths: ['/oauth2/callback', '/postern/oidc/callback'],

    async begin({ state, redirectUri, isForced }) {
      const { openid } = await loadLibraries()
      const found = await discovered().catch((error: unknown) => down(error))
      if ('fault' in found) return found
      const verifier = openid.randomPKCECodeVerifier()
      const nonce = openid.randomNonce()
      const url = openid.buildAuthorizationUrl(found.config, {
        ...ownParams,
        redirect_uri: redirectUri,
        scope,
        state,
        nonce,
        code_challenge: await openid.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
        ...(isForced && { prompt: 'login' }),
      })
      return { location: url.href, kept: { verifier, nonce } }
    },

    async finish({ redirectUri, state, params, kept }) {
      const { openid } = await loadLibraries()
      const found = await discovered().catch((error: unknown) => down(error))
      if ('fault' in found) return found
      const { verifier = '', nonce = '' } = kept
      const answer = new URL(redirectUri)
      for (const name of answerParams) for (const value of params.getAll(name)) answer.searchParams.append(name, value)
      if (!answer.searchParams.has('code')) {
        return { fault: 'LOGIN_PROVIDER_ERROR', reason: 'the provider sent neither a code nor an error' }
      }
      try {
        const tokens = await openid.authorizationCodeGrant(found.config, answer, {
          pkceCodeVerifier: verifier,
          expectedNonce: nonce,
          expectedState: state,
          idTokenExpected: true,
        })
        const claims = tokens.claims()
        if (!claims) return { fault: 'LOGIN_NO_ID_TOKEN', reason: 'no ID token' }
        return (await tokenFault(found, tokens, claims)) ?? (await loggedIn(found, tokens, claims))
      } catch (error) {
        return exchangeFault(error, openid)
      }
    },

    ...(checkEveryMs > 0 && { check: (login: Login) => check(login) }),
  }

  /** Asks the provider about the user again; renews the access token when it has expired. */
  async function check({ user, kept: { accessToken = '', refreshToken = '' } }: Login): Promise<LoggedIn | LoginFault> {
    const { openid } = await loadLibraries()
    const found = await discovered().catch((error: unknown) => down(error))
    if ('fault' in found) return found
    const { config } = found
    if (config.serverMetadata().userinfo_endpoint === undefined) return again('the provider has no userinfo endpoint')
    try {
      const claims = await openid.fetchUserInfo(config, accessToken, user.id)
      return renewUser(user, claims, { accessToken, refreshToken })
    } catch (error) {
      if (!isUnauthorized(error)) return userinfoFault(error)
    }
    if (refreshToken === '') return again('the token is no longer valid')
    try {
      const tokens = await openid.refreshTokenGrant(config, refreshToken)
      const claims = await openid.fetchUserInfo(config, tokens.access_token, user.id)
      const next = { accessToken: tokens.access_token, refreshToken: tokens.refresh_token ?? refreshToken }
      return renewUser(user, claims, next)
    } catch (error) {
      if (error instanceof openid.ResponseBodyError || isUnauthorized(error))
        return again('the token is no longer valid')
      return userinfoFault(error)
    }
  }

  /**
   * Checks what the library does not: it skips the signature, since the token came over TLS, and accepts any `azp` with
   * a single audience, and any `iat`.
   */
  async function tokenFault(
    { keys, algorithms }: Discovered,
    { id_token = '' }: TokenEndpointResponse,
    { azp, iat }: IDToken,
  ): Promise<LoginFault | undefined> {
    const { jose } = await loadLibraries()
    const tokenRefused = (reason: string): LoginFault => ({ fault: 'LOGIN_TOKEN_REFUSED', reason })
    try {
      await jose.jwtVerify(id_token, keys, {
        algorithms: [...algorithms],
        audience: clientId,
        clockTolerance: CLOCK_TOLERANCE,
        currentDate: new Date(now()),
        requiredClaims: ['iss', 'sub', 'exp', 'iat'],
      })
    } catch (error) {
      if (error instanceof jose.errors.JOSEError) return tokenRefused(`ID token: ${error.code}`)
      return { fault: 'LOGIN_EXCHANGE_FAILED', reason: `keys of the provider: ${reasonOf(error)}` }
    }
    if (azp !== undefined && azp !== clientId) return tokenRefused('ID token: `azp` names another client')
    if (iat > now() / 1000 + CLOCK_TOLERANCE) return tokenRefused('ID token: issued in the future')
    return undefined
  }

  /** The user. Asks userinfo when the token has no e-mail address: many providers return it only there. */
  async function loggedIn(
    { config }: Discovered,
    { access_token, refresh_token }: TokenEndpointResponse,
    claims: IDToken,
  ): Promise<LoggedIn | LoginFault> {
    const { openid } = await loadLibraries()
    const asksMore = claims.email === undefined && config.serverMetadata().userinfo_endpoint !== undefined
    const more = asksMore ? await openid.fetchUserInfo(config, access_token, claims.sub) : {}
    // Either can say that the address is not verified.
    const user = readUser({ ...more, ...claims, ...(isUnverified(more) && { email_verified: false }) })
    if (!user) return { fault: 'LOGIN_CLAIMS_REFUSED', reason: 'no usable `sub`' }
    return { user, kept: { accessToken: access_token, ...(refresh_token && { refreshToken: refresh_token }) } }
  }
}

/** The user with the claims of a later answer; fields that the answer lacks stay as they were. */
function renewUser(
  before: LoginUser,
  claims: Readonly<Record<string, unknown>>,
  { accessToken, refreshToken }: { readonly accessToken: string; readonly refreshToken: string },
): LoggedIn | LoginFault {
  const now = readUser(claims)
  if (now?.id !== before.id) return again('the provider answered about another user')
  const user = {
    id: before.id,
    name: now.name || before.name,
    email: renewedEmail(before, now, claims),
    username: now.username || before.username,
  }
  return { user, kept: { accessToken, ...(refreshToken !== '' && { refreshToken }) } }
}

function renewedEmail(before: LoginUser, now: LoginUser, claims: Readonly<Record<string, unknown>>): string {
  if (claims.email === undefined && !isUnverified(claims)) return before.email
  // It may be empty because the ID token said that the address is not verified, and userinfo need not repeat that.
  return before.email === '' && claims.email_verified === undefined ? '' : now.email
}

/** The library reports a 401 in two ways, depending on whether the answer has a challenge. */
function isUnauthorized(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if ('status' in error) return error.status === 401
  return error.cause instanceof Response && error.cause.status === 401
}

/** When the answer is about another user, the login ends; any other error means that the provider is down. */
function userinfoFault(error: unknown): LoginFault {
  const reason = reasonOf(error)
  return reason === 'OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED'
    ? again('the provider answered about another user')
    : down(error)
}

function again(reason: string): LoginFault {
  return { fault: 'log_in_again', reason }
}

function down(error: unknown): LoginFault {
  return { fault: 'LOGIN_PROVIDER_DOWN', reason: reasonOf(error) }
}

/** OpenID Connect Core §2, in characters. */
const MAX_ID_LENGTH = 255
/** RFC 5321 §4.5.3.1.3 */
const MAX_EMAIL_LENGTH = 254
const MAX_NAME_LENGTH = 255

/** The user that a provider's claims describe. Undefined when the claims have no usable id. */
function readUser(claims: Readonly<Record<string, unknown>>): LoginUser | undefined {
  const { sub, name, email, email_verified, preferred_username } = claims
  const id = boundText(sub, MAX_ID_LENGTH)
  if (id === '') return undefined
  return {
    id,
    name: boundText(name, MAX_NAME_LENGTH),
    // At some providers users can enter any address; unverified, it would let them pose as anybody.
    email: isUnverified({ email_verified }) ? '' : boundText(email, MAX_EMAIL_LENGTH),
    username: boundText(preferred_username, MAX_NAME_LENGTH),
  }
}

/**
 * Whether `email_verified` is there and is anything but true. Corporate providers, such as Microsoft's, often omit it,
 * since their addresses come from the company's own directory. So a missing claim does not count.
 */
function isUnverified({ email_verified: verified }: Readonly<Record<string, unknown>>): boolean {
  // Some providers send a string instead of a boolean.
  return verified !== undefined && verified !== true && verified !== 'true'
}
