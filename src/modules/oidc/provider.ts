/** An OpenID Connect provider as logins see it: the code flow with PKCE, and an ID token of which everything is checked. */
import { createHash } from 'node:crypto'
import type { IDToken, TokenEndpointResponse } from 'openid-client'
import type { BeginAttempt, Beginning, Callback, LoggedIn, LoginFault, LoginProvider } from '../login/provider.ts'
import type { ModuleTools } from '../tools.ts'
import { readUser } from './claims.ts'
import { CLOCK_TOLERANCE, type Discovered, discovery } from './discovery.ts'
import { exchangeFault, reasonOf } from './faults.ts'
import { loadLibraries } from './libraries.ts'

export interface OidcClient {
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret: string
  readonly scopes: readonly string[]
}

/** Parameters of a callback that the exchange of its code depends on. */
const answerParams = ['code', 'state', 'iss'] as const

export function oidcProvider(
  client: OidcClient,
  { fetch, now, log }: Pick<ModuleTools, 'fetch' | 'now' | 'log'>,
): LoginProvider {
  const { issuer, clientId, scopes } = client
  const discovered = discovery(client, loadLibraries, { fetch, now, log })
  const scope = [...new Set(['openid', ...scopes])].join(' ')

  return {
    name: 'oidc',
    url: issuer,
    clientId,
    identity: createHash('sha256')
      .update(JSON.stringify(['oidc', issuer, clientId, scope]))
      .digest('base64url'),
    rules: '',
    checkEveryMs: 0,
    callbackPaths: ['/oauth2/callback', '/postern/oidc/callback'],

    async begin({ state, redirectUri, isForced }: BeginAttempt): Promise<Beginning | LoginFault> {
      const { openid } = await loadLibraries()
      const found = await discovered().catch((error: unknown) => down(error))
      if ('fault' in found) return found
      const verifier = openid.randomPKCECodeVerifier()
      const nonce = openid.randomNonce()
      const url = openid.buildAuthorizationUrl(found.config, {
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

    async finish({ redirectUri, state, params, kept }: Callback): Promise<LoggedIn | LoginFault> {
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
        return (await distrust(found, tokens, claims)) ?? (await loggedIn(found, tokens, claims))
      } catch (error) {
        return exchangeFault(error, openid)
      }
    },
  }

  /**
   * What the library does not look at: it trusts the connection for the signature, and takes any `azp` beside a single
   * audience and any `iat`.
   */
  async function distrust(
    { keys, algorithms }: Discovered,
    { id_token = '' }: TokenEndpointResponse,
    { azp, iat }: IDToken,
  ): Promise<LoginFault | undefined> {
    const { jose } = await loadLibraries()
    const refused = (reason: string): LoginFault => ({ fault: 'LOGIN_TOKEN_REFUSED', reason })
    try {
      await jose.jwtVerify(id_token, keys, {
        algorithms: [...algorithms],
        audience: clientId,
        clockTolerance: CLOCK_TOLERANCE,
        currentDate: new Date(now()),
        requiredClaims: ['iss', 'sub', 'exp', 'iat'],
      })
    } catch (error) {
      if (error instanceof jose.errors.JOSEError) return refused(`ID token: ${error.code}`)
      return { fault: 'LOGIN_EXCHANGE_FAILED', reason: `keys of the provider: ${reasonOf(error)}` }
    }
    if (azp !== undefined && azp !== clientId) return refused('ID token: for another party')
    if (iat > now() / 1000 + CLOCK_TOLERANCE) return refused('ID token: from the future')
    return undefined
  }

  /** Who it is; asks once more when the token has no address, since many providers keep it for that. */
  async function loggedIn(
    { config }: Discovered,
    { access_token, refresh_token }: TokenEndpointResponse,
    claims: IDToken,
  ): Promise<LoggedIn | LoginFault> {
    const { openid } = await loadLibraries()
    const asksMore = claims.email === undefined && config.serverMetadata().userinfo_endpoint !== undefined
    const more = asksMore ? await openid.fetchUserInfo(config, access_token, claims.sub) : {}
    const user = readUser({ ...more, ...claims })
    if (!user) return { fault: 'LOGIN_CLAIMS_REFUSED', reason: 'no usable `sub`' }
    return { user, kept: { accessToken: access_token, ...(refresh_token && { refreshToken: refresh_token }) } }
  }
}

function down(error: unknown): LoginFault {
  return { fault: 'LOGIN_PROVIDER_DOWN', reason: reasonOf(error) }
}
